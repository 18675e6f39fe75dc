"""What an evaler has evaluated: JSON lines in eval_<dataset>/evaluated.jsonl.

  {"step": 200, "saved_at": "2026-01-31T12:00:00+00:00",
   "metrics": {"loss": 0.31, "accuracy": 0.91}}          (all on one line)

A checkpoint is known by its step and by when it was saved: a run that was begun
anew in the same directory has new ones. The last line on a checkpoint counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from lingvo_gpipe.train import summaries


class EvalHistory:
  """The evaluations of a dataset.

  Args:
    path: of the file, which need not exist.
  """

  def __init__(self, path: str):
    self._path = path
    self._found: dict[tuple[int, str], dict[str, float]] = {}
    try:
      with open(path, 'rb') as f:
        lines = f.readlines()
    except FileNotFoundError:
      return
    for line in lines:
      record = _Parse(line)
      if record is not None:
        self._Put(record)
    if lines and not lines[-1].endswith(b'\n'):  # A crash left it unfinished.
      with open(path, 'ab') as f:
        f.write(b'\n')

  def _Put(self, record: Mapping[str, Any]) -> None:
    metrics = {
      name: float('nan') if value is None else value
      for name, value in record['metrics'].items()
    }
    self._found[record['step'], record['saved_at']] = metrics

  def Find(self, step: int, saved_at: str) -> dict[str, float] | None:
    """The metrics of a checkpoint; None where it was not evaluated.

    Args:
      step: of the checkpoint.
      saved_at: as its JSON file says.

    Returns:
      {name: mean}, or None.
    """
    return self._found.get((step, saved_at))

  def Add(self, step: int, saved_at: str, metrics: Mapping[str, float]) -> None:
    """Notes the evaluation of a checkpoint.

    Args:
      step: of the checkpoint.
      saved_at: as its JSON file says.
      metrics: {name: mean}.
    """
    record = {'step': step, 'saved_at': saved_at, 'metrics': dict(metrics)}
    os.makedirs(os.path.dirname(self._path), exist_ok=True)
    summaries.AppendJson(self._path, record)
    self._Put(record)


def _Parse(line: bytes) -> dict[str, Any] | None:
  """A line's record; None for one that a crash left unfinished."""
  try:
    record = json.loads(line)
    return record if {'step', 'saved_at', 'metrics'} <= record.keys() else None
  except (ValueError, AttributeError):
    return None
