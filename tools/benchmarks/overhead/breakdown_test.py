"""Tests of breakdown: a step drawn by hand."""

import numpy as np
from absl.testing import absltest

from lingvo_gpipe.gpipe.timelines import timeline
from tools.benchmarks.overhead import breakdown


def _Timeline():
  """Two partitions, one micro-batch.

  partition 0   FF....RBB.       partition 1 starts 1 s after what it needs
  partition 1   ...FBB....       left; the gradient takes no time.
  """
  return timeline.FromTimes(
    [
      # Forward, recomputation, backward.
      np.array([[0.0, 2.0, 6.0, 7.0, 7.0, 9.0]]),
      np.array([[3.0, 4.0, 4.0, 4.0, 4.0, 6.0]]),
    ],
    devices=['/device:CPU:0', '/device:CPU:1'],
    schedule='gpipe',
    policies=['partition', 'none'],
  )


class SharesTest(absltest.TestCase):
  def testAll(self):
    shares = breakdown.Shares(_Timeline(), seconds=12.0, update_seconds=1.0)
    self.assertEqual(tuple(shares), breakdown.PARTS)
    self.assertAlmostEqual(sum(shares.values()), 1.0)
    seconds = {part: 24.0 * share for part, share in shares.items()}
    self.assertAlmostEqual(seconds['computation'], 2 + 2 + 1 + 2)
    self.assertAlmostEqual(seconds['recomputation'], 1)
    # Partition 0 has 5 s of work, partition 1 has 3 s.
    self.assertAlmostEqual(seconds['load imbalance'], 2)
    self.assertAlmostEqual(seconds['communication'], 1)
    self.assertAlmostEqual(seconds['weight update'], 2)
    # Of 24 s, the loop has 9 s on each device; the rest is 3 s, of which 1 s is
    # the update.
    self.assertAlmostEqual(
      seconds['bubble'] + seconds['setup'], 24 - 7 - 1 - 2 - 1 - 2
    )

  def testUpdateIsNoLongerThanThereIsTime(self):
    shares = breakdown.Shares(_Timeline(), seconds=9.5, update_seconds=3.0)
    self.assertAlmostEqual(shares['weight update'], 0.5 / 9.5)
    self.assertAlmostEqual(sum(shares.values()), 1.0)

  def testMedian(self):
    steps = [dict.fromkeys(breakdown.PARTS, x) for x in (0.1, 0.2, 0.6)]
    median = breakdown.Median(steps)
    self.assertAlmostEqual(sum(median.values()), 1.0)
    self.assertAlmostEqual(median['bubble'], 1 / len(breakdown.PARTS))


if __name__ == '__main__':
  absltest.main()
