"""Tests for cut_search."""

from __future__ import annotations

import itertools
import random

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import cut_search


def _BruteForce(tables, num_cells):
  """(largest cost, sum of squares), or None if no cut is allowed."""
  found = []
  for ends in itertools.combinations(range(1, num_cells), len(tables) - 1):
    ranges = zip([0, *ends], [*ends, num_cells], strict=True)
    costs = [table[i, j] for table, (i, j) in zip(tables, ranges, strict=True)]
    found.append((max(costs), sum(c * c for c in costs)))
  best = min(found)
  return None if best[0] == np.inf else best


class SearchTest(parameterized.TestCase):
  @parameterized.parameters(0.0, 0.2, 0.6)
  def testEqualsBruteForceWithAnyCosts(self, forbidden):
    """No order among costs: a longer partition may be cheaper, or allowed."""
    rng = random.Random(1)
    outcomes = set()
    for _ in range(200):
      num_cells = rng.randint(1, 7)
      tables = []
      for _ in range(rng.randint(1, num_cells)):
        table = np.full([num_cells + 1, num_cells + 1], np.inf)
        for i, j in itertools.combinations(range(num_cells + 1), 2):
          if rng.random() >= forbidden:
            table[i, j] = rng.randint(0, 9)
        tables.append(table)
      functions = [lambda i, j, t=table: t[i, j] for table in tables]
      guess = rng.choice([0.0, 3.0, 100.0, np.inf])
      # No lower bound is known.
      cut = cut_search.Search(functions, np.zeros(num_cells + 1), guess)
      expected = _BruteForce(tables, num_cells)
      outcomes.add(expected is None)
      if expected is None:
        self.assertIsNone(cut)
        continue
      self.assertEqual([i for i, _ in cut[1:]], [j for _, j in cut[:-1]])
      self.assertEqual((cut[0][0], cut[-1][1]), (0, num_cells))
      costs = [t[i, j] for t, (i, j) in zip(tables, cut, strict=True)]
      self.assertEqual((max(costs), sum(c * c for c in costs)), expected)
    self.assertIn(False, outcomes)
    if forbidden:
      self.assertIn(True, outcomes)

  def testALowGuessIsRaised(self):
    prefix = np.arange(201, dtype=np.float64)
    functions = [lambda i, j: 5 * (prefix[j] - prefix[i])] * 2
    for guess in (0.0, 1e-3, 100.0, 1e6):
      cut = cut_search.Search(functions, prefix, guess)
      self.assertEqual(cut, [(0, 100), (100, 200)])

  def testAFunctionForAllIsTabulatedOnce(self):
    calls = []

    def _Cost(i, j):
      calls.append((i.size, j.size))
      return (j - i).astype(np.float64)

    prefix = np.arange(33, dtype=np.float64)
    cut_search.Search([_Cost] * 8, prefix, 4.0)
    # For the largest cost and for the cut, one block each.
    self.assertLen(calls, 2)


if __name__ == '__main__':
  absltest.main()
