"""What the tools print and write: progress, a table, JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lingvo_gpipe import text_table


class Column(NamedTuple):
  """A column of a table.

  Attributes:
    key: of the rows' values.
    heading: above it.
    show: makes text of a value that is not None.
  """

  key: str
  heading: str
  show: Callable[[Any], str] = str


def Progress(text: str) -> None:
  """Says on stderr what is going on."""
  print(text, file=sys.stderr, flush=True)


def Table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
  """A table of text.

  Args:
    columns: from left to right; those without any value are left out.
    rows: values by the columns' keys; None, or no entry, shows as '-'.

  Returns:
    Aligned lines: the first column to the left, others to the right.
  """
  columns = [
    c for c in columns if any(row.get(c.key) is not None for row in rows)
  ]
  lines = [[c.heading for c in columns]]
  for row in rows:
    values = [row.get(c.key) for c in columns]
    lines.append(
      [
        '-' if value is None else c.show(value)
        for c, value in zip(columns, values, strict=True)
      ]
    )
  return '\n'.join(text_table.Aligned(lines, left=(0,)))


def Machine() -> dict[str, Any]:
  """What the measurements depend on beside the program."""
  return {
    'processor': _Processor(),
    'cores': len(os.sched_getaffinity(0)),
    'python': platform.python_version(),
    'system': platform.platform(),
  }


def _Processor() -> str:
  with open('/proc/cpuinfo', encoding='utf-8') as f:
    for line in f:
      if line.startswith('model name'):
        return line.partition(':')[2].strip()
  return platform.machine()


def WriteJson(
  path: str, rows: Sequence[Mapping[str, Any]], **settings: Any
) -> None:
  """Writes rows, settings and the machine to a file.

  Args:
    path: of the file; its folder is made. A relative one is relative to where
      the command was typed, also under bazel run.
    rows: of the table.
    **settings: further entries of the file's object.
  """
  path = os.path.join(os.environ.get('BUILD_WORKING_DIRECTORY', ''), path)
  folder = os.path.dirname(path)
  if folder:
    os.makedirs(folder, exist_ok=True)
  with open(path, 'w', encoding='utf-8') as f:
    json.dump(
      {'machine': Machine(), **settings, 'rows': list(rows)}, f, indent=2
    )
    f.write('\n')


# How values are shown.


def Seconds(value: float) -> str:
  """'0.123' and, from 100 s on, '123'."""
  return f'{value:.3f}' if value < 100 else f'{value:.0f}'


def Ratio(value: float) -> str:
  """'1.23'."""
  return f'{value:.2f}'


def Percent(value: float) -> str:
  """'12.3%', of a share from 0 to 1."""
  return f'{value:.1%}'


def Count(value: float) -> str:
  """'12,345'."""
  return f'{value:,.0f}'


def Mebibytes(value: float) -> str:
  """Bytes in MiB, '123.4'."""
  return f'{value / 2**20:.1f}'
