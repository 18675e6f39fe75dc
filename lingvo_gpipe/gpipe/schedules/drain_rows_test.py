"""Tests of drain_rows; loop_table_test has more, on whole tables."""

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import drain_rows


def _FirstRows(num_partitions, num_micro_batches):
  """Rows of forward and of backward passes, as early as can be."""
  step = np.arange(num_micro_batches)
  forward = np.stack([k + step for k in range(num_partitions)])
  backward = [num_partitions - 1 + step]
  for k in reversed(range(num_partitions - 1)):
    rows = np.maximum(backward[0] + 1, forward[k, -1])
    backward.insert(0, np.maximum.accumulate(rows - step) + step)
  return forward, np.stack(backward)


class DrainRowsTest(parameterized.TestCase):
  def testExampleOfTheModule(self):
    rows = drain_rows.Align(*_FirstRows(2, 6))
    self.assertEqual(rows.tolist(), [[5, 6, 7, 8, 9, 10], [1, 5, 6, 7, 8, 9]])

  @parameterized.product(k=(1, 2, 3, 4, 8), m=(1, 2, 3, 5, 8, 16, 33))
  def testOrderStays(self, k, m):
    forward, first = _FirstRows(k, m)
    rows = drain_rows.Align(forward, first)
    self.assertTrue(np.all(rows >= first))
    self.assertTrue(np.all(np.diff(rows, axis=1) > 0))
    self.assertTrue(np.all(rows[:-1] > rows[1:]))  # Gradients arrive before.
    self.assertTrue(np.all(rows[:-1, 0] >= forward[:-1, -1]))
    # Nothing is moved that need not be.
    self.assertTrue(np.array_equal(drain_rows.Align(forward, rows), rows))
    if k == 1 or m < 3:
      self.assertTrue(np.array_equal(rows, first))


if __name__ == '__main__':
  absltest.main()
