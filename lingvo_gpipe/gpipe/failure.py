"""Which cell failed: from the name of an operation to cell and partition.

Stages name their operations partition_<k>/<cell>/..., in further replicas of
the pipeline replica_<r>/partition_<k>/<cell>/...; whatever graph they end
up in, and on whatever device or machine they run, TensorFlow's error tells the
operation's name.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

import tensorflow as tf

from lingvo_gpipe import base_layer
from lingvo_gpipe.gpipe import stage as stage_lib

_SCOPE = re.compile(r'(?:replica_(\d+)/)?partition_(\d+)(?:_\d+)?/([^/\s}]+)/')


def FailedCell(
  error: Exception, stages: Sequence[stage_lib.Stage]
) -> tuple[stage_lib.Stage, int, base_layer.BaseLayer] | None:
  """The cell whose operation an error names.

  Args:
    error: of TensorFlow's runtime.
    stages: of all replicas of the pipeline.

  Returns:
    (stage, index of the cell in the whole list, cell), or None.
  """
  by_number = {(stage.replica, stage.index): stage for stage in stages}
  for replica, number, name in _SCOPE.findall(str(error)):
    stage = by_number.get((int(replica or 0), int(number)))
    for i, cell in enumerate(stage.cells if stage else ()):
      if ScopeName(cell) == name:
        return stage, stage.first_cell + i, cell
  return None


def ScopeName(cell: base_layer.BaseLayer) -> str:
  """The cell's name as part of names of operations."""
  return re.sub(r'[^A-Za-z0-9_.\-]', '_', cell.params.name)


@contextlib.contextmanager
def Named(stages: Sequence[stage_lib.Stage]) -> Iterator[None]:
  """Gives errors raised within a note (PEP 678) that names the cell."""
  try:
    yield
  except tf.errors.OpError as e:
    found = FailedCell(e, stages)
    if found is not None and not getattr(e, '__notes__', None):
      stage, index, unused_cell = found
      e.add_note(f'in {stage.Describe(index)}')
    raise
