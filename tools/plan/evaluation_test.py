"""Tests for evaluation."""

from __future__ import annotations

import dataclasses

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition_memory
from lingvo_gpipe.gpipe.schedules import schedule
from tools.plan import candidates, device, evaluation, fake_model


def _Candidate(k, m=8, policy='none', r=1, name='1f1b', chunks=1, size=1):
  return candidates.Candidate(r, k, m, size, name, chunks, policy)


def _Evaluator(model, **kwargs):
  return evaluation.Evaluator(
    model, device.Device(**{'flops': 1.0, 'link_speed': 1e9, **kwargs})
  )


class EvaluateTest(parameterized.TestCase):
  @parameterized.parameters('gpipe', '1f1b')
  def testBubbleOfEqualPartitionsIsThePapers(self, name):
    one = _Evaluator(fake_model.FakeModel(8), link_speed=1e12).Evaluate(
      _Candidate(4, name=name)
    )
    self.assertEqual(one.ranges, ((0, 2), (2, 4), (4, 6), (6, 8)))
    self.assertAlmostEqual(one.bubble, 3 / 11, places=6)
    self.assertAlmostEqual(one.loop_seconds, 6 * 11, places=6)
    self.assertEqual(one.seconds, one.loop_seconds)

  @parameterized.parameters('none', 'partition', 'cell')
  def testMemoryIsThatOfPartitionMemory(self, policy):
    model = fake_model.FakeModel(8, state=[7, 3])
    one = _Evaluator(model, memory_overhead=1000).Evaluate(
      _Candidate(4, policy=policy)
    )
    counted = partition_memory.PartitionMemory(
      model.Count(1).costs, 8, state_bytes=[10] * 8
    )
    slots = partition_memory.AllSlots(schedule.MakeSchedule('1f1b', 4, 8))
    expected = counted.Of(slots, [policy] * 4, one.ranges)
    # Gradients exist twice.
    gradients = [10 * (j - i) for i, j in one.ranges]
    self.assertEqual(
      list(one.memory),
      [1000 + e + g for e, g in zip(expected, gradients, strict=True)],
    )

  def testADeviceHoldsAllItsChunks(self):
    model = fake_model.FakeModel(8)
    one = _Evaluator(model).Evaluate(
      _Candidate(2, name='interleaved', chunks=2)
    )
    self.assertLen(one.ranges, 4)
    self.assertLen(one.memory, 2)
    self.assertGreater(min(one.memory), 4 * 30)  # Weights, gradients twice.

  @parameterized.parameters(
    # A variable is not divided.
    ([4000], 4000),
    ([40] * 100, 2020),
  )
  def testReplicasShareState(self, state, share):
    evaluator = _Evaluator(fake_model.FakeModel(4, state=state))
    one = evaluator.Evaluate(_Candidate(1, m=4, r=1))
    two = evaluator.Evaluate(_Candidate(1, m=4, r=2))
    self.assertEqual(one.memory[0] - two.memory[0], 4 * (4000 - share))

  def testReplicasAddUpGradients(self):
    planned = _Evaluator(fake_model.FakeModel(4), link_speed=2.0).Evaluate(
      _Candidate(1, m=4, r=2)
    )
    self.assertEqual(planned.all_reduce_seconds, 40 / 2.0)

  def testUpdate(self):
    planned = _Evaluator(
      fake_model.FakeModel(4, state=[5]), memory_speed=2.0
    ).Evaluate(_Candidate(1))
    self.assertEqual(planned.update_seconds, (2 * (40 + 20) + 5 * 40) / 2)

  def testGradientsOfEachMicroBatchAreAddedUp(self):
    fast, slow = (
      _Evaluator(fake_model.FakeModel(4), **kwargs).Evaluate(_Candidate(1, m=4))
      for kwargs in ({}, {'memory_speed': 2.0})
    )
    self.assertEqual(slow.loop_seconds - fast.loop_seconds, 4 * 4 * 30 / 2)

  def testLastPartitionRecomputesAllButItsLastCell(self):
    seconds = {
      policy: _Evaluator(fake_model.FakeModel(4)).Evaluate(
        _Candidate(1, policy=policy)
      )
      for policy in ('none', 'cell')
    }
    self.assertEqual(seconds['none'].loop_seconds, 8 * 4 * 3)
    self.assertEqual(seconds['cell'].loop_seconds, 8 * (4 * 3 + 3))

  def testNoCutIsFasterThanTheBound(self):
    evaluator = _Evaluator(fake_model.FakeModel(8))
    for c in candidates.Candidates(8, 8, 8):
      self.assertGreaterEqual(
        evaluator.Evaluate(c).seconds, evaluator.LeastSeconds(c) - 1e-9
      )

  def testSlowLinksAndCellOverheadsTakeTime(self):
    fast = _Evaluator(fake_model.FakeModel(8)).Evaluate(_Candidate(4)).seconds
    for kwargs in (
      {'link_speed': 1.0},
      {'link_latency': 1.0},
      {'cell_overhead': 1.0},
      {'flops': 0.5},
    ):
      slow = (
        _Evaluator(fake_model.FakeModel(8), **kwargs)
        .Evaluate(_Candidate(4))
        .seconds
      )
      self.assertGreater(slow, fast)


class MemoryTest(absltest.TestCase):
  def testWhatDoesNotFit(self):
    model = fake_model.FakeModel(16)
    candidate = _Candidate(2)
    needed = _Evaluator(model).Evaluate(candidate).memory
    enough = _Evaluator(model, memory=max(needed))
    self.assertEqual(enough.Evaluate(candidate).memory, needed)
    less = _Evaluator(model, memory=max(needed) * 2 // 3)
    self.assertIsNone(less.Evaluate(candidate))
    self.assertFalse(less.Fits(candidate))
    rejected = less.Reject(candidate)
    self.assertGreater(rejected.memory, max(needed) * 2 // 3)
    self.assertLessEqual(rejected.memory, max(needed))

  def testSmallestFitting(self):
    evaluator = _Evaluator(fake_model.FakeModel(16), memory=700)
    candidate = _Candidate(1)
    self.assertFalse(evaluator.Fits(candidate))
    smallest = evaluator.SmallestFitting(candidate)

    def _Fits(k):
      return evaluator.Fits(dataclasses.replace(candidate, num_devices=k))

    self.assertEqual(smallest, min(k for k in range(1, 17) if _Fits(k)))
    self.assertIsNone(
      _Evaluator(fake_model.FakeModel(16), memory=20).SmallestFitting(candidate)
    )

  def testAutoComputesNoMoreAgainThanItMust(self):
    model = fake_model.FakeModel(8)
    needed = {
      policy: max(_Evaluator(model).Evaluate(_Candidate(4, 8, policy)).memory)
      for policy in ('none', 'partition')
    }
    between = sum(needed.values()) // 2
    evaluator = _Evaluator(model, memory=between)
    self.assertIsNone(evaluator.Evaluate(_Candidate(4, 8, 'none')))
    planned = evaluator.Evaluate(_Candidate(4, 8, 'auto'))
    self.assertIn('none', planned.policies)
    self.assertGreater(len(set(planned.policies)), 1)
    self.assertLessEqual(max(planned.memory), between)

  def testMoreMemoryIsNeverSlower(self):
    before = float('inf')
    for memory in range(150, 1000, 50):
      planned = _Evaluator(fake_model.FakeModel(8), memory=memory).Evaluate(
        _Candidate(4, 8, 'auto')
      )
      if planned is not None:
        self.assertLessEqual(planned.seconds, before + 1e-9)
        before = planned.seconds
    self.assertLess(before, float('inf'))


if __name__ == '__main__':
  absltest.main()
