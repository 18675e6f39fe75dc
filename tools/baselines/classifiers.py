"""Simple classifiers of vectors: what a network has to be better than.

Each is a function of training examples and returns one that predicts: vectors,
float32 [n, dim], to labels [n].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from tools.baselines import examples

Predict = Callable[[np.ndarray], np.ndarray]

# How many distances are computed at once, to bound memory.
_MAX_DISTANCES = 10_000_000

# Strengths of regularization to choose from, and the one without dev data.
_STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_DEFAULT_STRENGTH = 1.0


def MajorityClass(train: examples.Examples) -> Predict:
  """Always the most frequent class; of several, the least."""
  labels, counts = np.unique(train.labels, return_counts=True)
  label = labels[counts.argmax()]
  return lambda pixels: np.full(len(pixels), label)


def NearestNeighbour(train: examples.Examples) -> Predict:
  """The class of the training example at the least Euclidean distance."""
  known = train.pixels
  squares = np.sum(known * known, axis=1)
  step = max(1, _MAX_DISTANCES // len(known))

  def _Predict(pixels):
    nearest = [
      # Without the square of the pixels, which is the same for all.
      (squares - 2.0 * pixels[i : i + step] @ known.T).argmin(1)
      for i in range(0, len(pixels), step)
    ]
    return train.labels[np.concatenate(nearest)]

  return _Predict


def LogisticRegression(
  train: examples.Examples, dev: examples.Examples | None
) -> Predict:
  """Multinomial logistic regression on pixels with an L2 penalty.

  Args:
    train: to fit.
    dev: of the strengths 0.1, 1, 10, 100 and 1000 (scikit-learn's 1 / C) the
      one that is best on it is taken, of several the strongest; None: 1.

  Returns:
    The function that predicts.
  """
  # Only here: it takes seconds.
  from sklearn import exceptions, linear_model

  best, best_accuracy = None, -1.0
  for strength in sorted(_STRENGTHS if dev else [_DEFAULT_STRENGTH])[::-1]:
    model = linear_model.LogisticRegression(C=1.0 / strength, max_iter=200)
    with warnings.catch_warnings():
      # Far from converged is near enough: dev data tells.
      warnings.simplefilter('ignore', exceptions.ConvergenceWarning)
      model.fit(train.pixels, train.labels)
    accuracy = Accuracy(model.predict, dev) if dev else 0.0
    if accuracy > best_accuracy:
      best, best_accuracy = model.predict, accuracy
  return best


def Accuracy(predict: Predict, data: examples.Examples) -> float:
  """The share of examples that `predict` is right about."""
  return float(np.mean(predict(data.pixels) == data.labels))
