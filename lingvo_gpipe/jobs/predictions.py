"""Predictions of an evaluation as a file of JSON lines, one for each example.

  {"dataset": "test", "index": 0, "label": 3, "predicted": 3,
   "probability": 0.98, "top5": [[3, 0.98], [8, 0.01], ...]}
                                                 (all on one line)

Examples stand in the order of the dataset, `index` counts them; what only fills
up a batch is left out. Which lines are written is chosen by what the last cell
returns in evaluation: classifiers return `logits` [batch, classes]. Where these
are not all finite, nothing is predicted: null.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_TOP = 5


class Writer:
  """Writes predictions; whoever reads the file sees it whole.

  Args:
    path: of the file.
  """

  def __init__(self, path: str):
    self.path = os.path.abspath(path)
    directory, name = os.path.split(self.path)
    self._temporary = os.path.join(directory, f'.{name}.{os.getpid()}')
    self._file = open(self._temporary, 'w', encoding='utf-8')
    self._counts: dict[str, int] = {}

  def Add(
    self,
    dataset: str,
    batch: Mapping[str, Any],
    outputs: Mapping[str, Any],
    is_example: np.ndarray,
  ) -> None:
    """Writes a line for each example of a batch.

    Args:
      dataset: its name, such as 'test'.
      batch: with `labels` [batch].
      outputs: of the last cell.
      is_example: bools [batch], False for rows that are left out.
    """
    Check(outputs, batch)
    lines = _ClassLines(
      np.asarray(outputs['logits'])[is_example],
      np.asarray(batch['labels'])[is_example],
    )
    for line in lines:
      index = self._counts.get(dataset, 0)
      self._counts[dataset] = index + 1
      values = {'dataset': dataset, 'index': index, **line}
      self._file.write(json.dumps(values, allow_nan=False) + '\n')

  def Publish(self) -> None:
    """Puts the file in its place."""
    self._file.close()
    os.replace(self._temporary, self.path)

  def Close(self) -> None:
    """Removes what was not published."""
    self._file.close()
    with contextlib.suppress(FileNotFoundError):
      os.unlink(self._temporary)


@contextlib.contextmanager
def Open(path: str) -> Iterator[Writer | None]:
  """A writer for the body, which is to publish its file; None for path ''."""
  if not path:
    yield None
    return
  writer = Writer(path)
  try:
    yield writer
  finally:
    writer.Close()


def Check(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> None:
  """Checks that there is something to write.

  Args:
    outputs: of the last cell, tensors or specs.
    batch: tensors or specs.

  Raises:
    ValueError: where there are no lines for such outputs.
  """
  logits, labels = outputs.get('logits'), batch.get('labels')
  if logits is not None and len(logits.shape) == 2:
    if labels is not None and len(labels.shape) == 1:
      return
  raise ValueError(
    'there is nothing to predict: that needs a last cell that returns logits '
    '[batch, classes] in evaluation, and a batch with labels [batch]; this one '
    f'returns {_Shapes(outputs)}, and its batch has {_Shapes(batch)}'
  )


def _Shapes(tensors: Mapping[str, Any]) -> str:
  shapes = [
    f'{name} {list(x.shape)}' if hasattr(x, 'shape') else name
    for name, x in sorted(tensors.items())
  ]
  return ', '.join(shapes) or 'nothing else than metrics'


def _ClassLines(
  logits: np.ndarray, labels: np.ndarray
) -> Iterator[dict[str, Any]]:
  """What a classifier says; of equal logits the lower class comes first."""
  logits = logits.astype(np.float64)
  for row, label in zip(logits, labels, strict=True):
    line = {'label': int(label), 'predicted': None, 'probability': None}
    top = []
    if np.isfinite(row).all():
      odds = np.exp(row - row.max())
      order = np.argsort(-row, kind='stable')[:_TOP]
      top = [[int(k), float(odds[k] / odds.sum())] for k in order]
      line.update(predicted=top[0][0], probability=top[0][1])
    yield {**line, 'top5': top}
