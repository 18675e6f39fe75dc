"""Skip connections: checks, from the names that cells declare.

A cell that stashes a name and a later one that pops it are connected past the
cells in between (BaseLayer.Stashes, Pops). What they declare is known before
anything is traced, so a list of cells is checked as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from lingvo_gpipe import base_layer


def Check(cells: Sequence[base_layer.BaseLayer]) -> None:
  """Checks that each connection begins once, and ends once, later.

  Args:
    cells: all cells, from the first to the last.

  Raises:
    ValueError: lists every fault.
  """
  begins: dict[str, int] = {}
  ends: dict[str, int] = {}
  faults = []
  for i, cell in enumerate(cells):
    for name in cell.Pops():
      if name in cell.Stashes():
        faults.append(f'{cell.path} both stashes and pops {name!r}')
      elif name in ends:
        faults.append(
          f'{cell.path} pops {name!r}, which {cells[ends[name]].path} has '
          'popped already'
        )
      ends.setdefault(name, i)
    for name in cell.Stashes():
      if name in begins:
        faults.append(
          f'{cell.path} stashes {name!r}, which {cells[begins[name]].path} has '
          'stashed already'
        )
      begins.setdefault(name, i)
  for name, i in ends.items():
    if name not in begins:
      faults.append(f'{cells[i].path} pops {name!r}, which no cell stashes')
    elif begins[name] > i:
      faults.append(
        f'{cells[i].path} pops {name!r} before {cells[begins[name]].path} '
        'stashes it'
      )
  faults += [
    f'{cells[i].path} stashes {name!r}, which no cell pops'
    for name, i in begins.items()
    if name not in ends
  ]
  if faults:
    raise ValueError(f'skip connections that do not fit: {"; ".join(faults)}')
