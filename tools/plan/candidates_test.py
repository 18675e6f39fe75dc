"""Tests for candidates."""

from __future__ import annotations

import itertools
import random

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition, policies
from lingvo_gpipe.gpipe.schedules import schedule
from tools.plan import candidates

Choices = candidates.Choices


def _Numbers(found):
  return {
    (c.num_replicas, c.num_devices, c.num_micro_batches, c.micro_batch_size)
    for c in found
  }


class CandidatesTest(parameterized.TestCase):
  def testAllPoliciesAreKnown(self):
    self.assertCountEqual(
      candidates.POLICIES, [*policies.REMATERIALIZE, policies.AUTO]
    )

  @parameterized.parameters((1, 1, 1), (6, 20, 24), (8, 5, 12), (16, 9, 8))
  def testAllArePossible(self, num_devices, num_cells, batch_size):
    found = candidates.Candidates(num_devices, num_cells, batch_size)
    self.assertLen(set(found), len(found))
    for c in found:
      self.assertLessEqual(c.num_replicas * c.num_devices, num_devices)
      self.assertLessEqual(c.num_partitions, num_cells)
      self.assertEqual(
        c.num_replicas * c.num_micro_batches * c.micro_batch_size, batch_size
      )
      c.Table().Check()

  def testAllDevicesAreUsedAndFewerToo(self):
    found = candidates.Candidates(4, 10, 4)
    self.assertEqual(
      {(c.num_replicas, c.num_devices) for c in found},
      {(1, 4), (1, 2), (1, 1), (2, 2), (2, 1), (4, 1)},
    )

  def testOneDeviceHasOneOrder(self):
    found = candidates.Candidates(1, 10, 4)
    self.assertEqual({c.order for c in found}, {'1f1b'})

  def testChoices(self):
    choices = Choices([2], [3], [4], ['interleaved'], ['cell', 'none'])
    found = candidates.Candidates(8, 8, 16, choices)
    self.assertEqual(_Numbers(found), {(2, 3, 4, 2)})
    self.assertEqual({c.order for c in found}, {'interleaved x2'})
    # From the fastest on, in whatever order they were given.
    self.assertEqual([c.policy for c in found], ['none', 'cell'])

  def testMiniBatchesOfSeveralSizes(self):
    found = candidates.Candidates(2, 4, 48, Choices(replicas=[2]), divisible=4)
    self.assertEqual(_Numbers(found), {(2, 1, 1, 24), (2, 1, 2, 12)})

  def testManyMicroBatchesOnlyOnDemand(self):
    found = candidates.Candidates(1, 4, 1024)
    self.assertEqual(max(c.num_micro_batches for c in found), 256)
    (one,) = candidates.Candidates(
      1, 4, 1024, Choices(micro_batches=[1024], policies=['none'])
    )
    self.assertEqual(one.num_micro_batches, 1024)

  @parameterized.parameters(
    ((0, 4, 8), {}, '--num_devices=0 must be 1 or more'),
    ((2, 4, 0), {}, 'mini-batch of 0 examples'),
    ((2, 4, 7), {'micro_batches': [3]}, 'divides the 7 examples.*1,7'),
    ((2, 4, 8), {'replicas': [3]}, '--replicas=3: the numbers.*are 1,2'),
    ((2, 4, 8), {'partitions': [5]}, 'no K of --partitions=5 is at most 2'),
  )
  def testErrors(self, args, choices, message):
    with self.assertRaisesRegex(ValueError, message):
      candidates.Candidates(*args, Choices(**choices))

  @parameterized.parameters('schedules', 'policies')
  def testUnknownNames(self, flag):
    with self.assertRaisesRegex(ValueError, f"--{flag}: 'x' is not one of"):
      Choices(**{flag: ['x']})


class LeastSecondsTest(absltest.TestCase):
  def testNoCutOfManyIsFaster(self):
    draw = random.Random(1)
    for _ in range(150):
      cells = [
        partition.CellTime(draw.randrange(9), draw.randrange(1, 9))
        for _ in range(draw.randrange(4, 8))
      ]
      c = draw.choice(
        candidates.Candidates(
          4, len(cells), 8, Choices(policies=['none', 'partition', 'cell'])
        )
      )
      ends = sorted(draw.sample(range(1, len(cells)), c.num_partitions - 1))
      bounds = itertools.pairwise([0, *ends, len(cells)])
      parts = [cells[i:j] for i, j in bounds]
      forward = [sum(t.forward for t in part) for part in parts]
      backward = [sum(t.backward for t in part) for part in parts]
      again = policies.Recompute([c.policy] * c.num_partitions)
      if c.policy == 'cell':
        again[-1] = False  # The least that it can be: with one cell.
      seconds = schedule.StepTime(
        c.Table(),
        forward,
        backward,
        [f * r for f, r in zip(forward, again, strict=True)],
      )
      least = candidates.LeastSeconds(c, sum(forward), sum(backward))
      self.assertLessEqual(least, seconds + 1e-9, (c, parts))

  def testExactForOneDevice(self):
    (c,) = candidates.Candidates(
      1, 3, 8, Choices(micro_batches=[4], policies=['none'])
    )
    self.assertEqual(candidates.LeastSeconds(c, 2.0, 4.0), 24.0)

  def testNothingTakesNoTime(self):
    (c,) = candidates.Candidates(
      1, 3, 8, Choices(micro_batches=[4], policies=['none'])
    )
    self.assertEqual(candidates.LeastSeconds(c, 0.0, 0.0), 0.0)


if __name__ == '__main__':
  absltest.main()
