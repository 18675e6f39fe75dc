"""The exact loss of every step, as JSON lines: <logdir>/train/metrics.jsonl.

  {"step": 1, "loss": 2.3147854804992676, "accuracy": 0.109375, ...}

Numbers are written so that they read back to the same bits; two runs are the
same where their lines are. A number that is not finite is written as null.

A restarted run goes on from its checkpoint: lines of later steps are cut off,
because those steps run again, and so is a line that a crash left unfinished.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from lingvo_gpipe import atomic_file

# What is kept for a later try: some ten thousand lines.
_MAX_UNWRITTEN = 4 << 20


class StepLog:
  """Appends to a log of steps.

  Args:
    path: of the file; its directory exists.
    step: the step the run goes on from; later lines go.
  """

  def __init__(self, path: str, step: int):
    self._path = path
    self._unwritten = b''
    if os.path.exists(path):
      with open(path, 'r+b') as f:
        f.truncate(_EndOfStep(f, step))

  def Append(self, records: Iterable[Mapping[str, Any]]) -> None:
    """Adds a line for each record, in the file when it returns.

    Args:
      records: each with `step` and numbers.

    Raises:
      OSError: where that fails, for want of disk for example. The file then
        ends with a whole line, and the next call writes what is missing, too.
    """
    lines = [
      json.dumps({k: _Finite(v) for k, v in record.items()}) + '\n'
      for record in records
    ]
    self._unwritten += ''.join(lines).encode()
    if len(self._unwritten) > _MAX_UNWRITTEN:
      self._unwritten = b''.join(
        self._unwritten[-_MAX_UNWRITTEN:].splitlines(keepends=True)[1:]
      )
    atomic_file.Append(self._path, self._unwritten)
    self._unwritten = b''


def Read(path: str) -> list[dict[str, Any]]:
  """The records of a log, in order.

  Args:
    path: of the file.

  Returns:
    One dict per line, as Append received them.
  """
  with open(path, encoding='utf-8') as f:
    return [json.loads(line) for line in f]


def _Finite(value: Any) -> Any:
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value


def _EndOfStep(lines: Iterable[bytes], step: int) -> int:
  """The offset behind the last whole line up to `step`."""
  offset = 0
  for line in lines:
    try:
      keep = line.endswith(b'\n') and json.loads(line)['step'] <= step
    except (ValueError, KeyError, TypeError):
      keep = False
    if not keep:
      break
    offset += len(line)
  return offset
