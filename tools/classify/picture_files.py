"""Classifies files in batches; a file that fails does not stop the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tools.classify import saved_classifier


@dataclasses.dataclass(frozen=True)
class Result:
  """What became of a file.

  Attributes:
    file: its name.
    probabilities: [classes]; None where it failed.
    error: why it failed, else ''.
  """

  file: str
  probabilities: np.ndarray | None
  error: str = ''


def Classify(
  classifier: Any, files: Sequence[str], batch_size: int
) -> Iterator[list[Result]]:
  """Reads and classifies files.

  Args:
    classifier: a SavedClassifier.
    files: names.
    batch_size: how many go through the network at once.

  Yields:
    The Results of up to batch_size files; all in the order of `files`.
  """
  for start in range(0, len(files), batch_size):
    batch = files[start : start + batch_size]
    contents, errors = {}, {}
    for i, file in enumerate(batch):
      try:
        with open(file, 'rb') as f:
          contents[i] = f.read()
      except OSError as e:
        errors[i] = e.strerror or str(e)
    probabilities, bad = _Probabilities(classifier, contents)
    errors.update(bad)
    yield [
      Result(file, probabilities.get(i), errors.get(i, ''))
      for i, file in enumerate(batch)
    ]


def _Probabilities(
  classifier: Any, contents: dict[int, bytes]
) -> tuple[dict[int, np.ndarray], dict[int, str]]:
  """Those of good pictures, and errors of the others, by their keys."""
  if not contents:
    return {}, {}
  try:
    rows = classifier.Probabilities(list(contents.values()))
    return dict(zip(contents, rows, strict=True)), {}
  except saved_classifier.BadPictureError as e:
    if len(contents) == 1:
      return {}, {next(iter(contents)): str(e)}
  # Which one it was is found by halves: among many, few are bad.
  good, bad = {}, {}
  keys = list(contents)
  middle = len(keys) // 2
  for part in (keys[:middle], keys[middle:]):
    found = _Probabilities(classifier, {i: contents[i] for i in part})
    good.update(found[0])
    bad.update(found[1])
  return good, bad
