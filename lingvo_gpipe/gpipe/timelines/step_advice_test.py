"""Tests of step_advice."""

from __future__ import annotations

import itertools

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition
from lingvo_gpipe.gpipe.schedules import schedule
from lingvo_gpipe.gpipe.timelines import (
  simulated_times,
  step_advice,
  step_report,
)
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def _Report(prediction, forward, name='1f1b', num_micro_batches=16, **kwargs):
  """A report of a step with B = 2 F and no recomputation."""
  num_partitions = len(forward)
  num_devices = kwargs.pop('num_devices', num_partitions)
  table = schedule.MakeSchedule(
    name, num_partitions, num_micro_batches, num_devices
  )
  times = simulated_times.Times(
    table,
    forward,
    [2 * f for f in forward],
    [0.0] * num_partitions,
    **kwargs,
  )
  timeline = timeline_lib.FromTimes(
    times,
    devices=simulated_times.Workers(num_partitions, num_devices),
    schedule=name,
    policies='none',
  )
  return step_report.MakeReport([timeline], prediction)


def _Prediction(num_partitions, cells_each=None, **kwargs):
  """Equal partitions, of so many equal cells each if given."""
  if cells_each is not None:
    num_cells = num_partitions * cells_each
    starts = range(0, num_cells, cells_each)
    kwargs['ranges'] = tuple((i, i + cells_each) for i in starts)
    kwargs['cells'] = (partition.CellTime(10, 20),) * num_cells
    kwargs['cell_names'] = tuple(f'cell_{i}' for i in range(num_cells))
  return step_report.Prediction(
    shares=(1 / num_partitions,) * num_partitions,
    balance=1.0,
    bubble=0.1,
    **kwargs,
  )


class CutTest(parameterized.TestCase):
  def testBetterCut(self):
    """Cells of partition 1 are measured to take twice as long as predicted."""
    prediction = _Prediction(3, cells_each=4, batch_size=16)
    report = _Report(prediction, [4.0, 8.0, 4.0])
    splits, gain = step_advice.BetterCut(report, prediction)
    # 12 cells of 1 1 1 1 2 2 2 2 1 1 1 1: at best 5, 6 and 5 instead of 8.
    self.assertIn(splits, ([4, 3, 5], [5, 3, 4]))
    (advice,) = report.advice
    self.assertStartsWith(
      advice,
      'partition 1 takes 1.50 times the mean (predicted: 1.00); '
      f'splits={splits} should make the step {gain:.0%} shorter; '
      '--profile_cells',
    )

    # True cells behave as promised.
    cells = [1.0] * 4 + [2.0] * 4 + [1.0] * 4
    ends = [0, *itertools.accumulate(splits)]
    again = _Report(
      _Prediction(3), [sum(cells[i:j]) for i, j in itertools.pairwise(ends)]
    )
    self.assertAlmostEqual(
      again.step_seconds, (1 - gain) * report.step_seconds, 5
    )

  def testRecomputation(self):
    """4 + 4 + 8 and 4 + 8: the last partition has room for more cells."""
    prediction = _Prediction(2, cells_each=4, batch_size=16)
    times = simulated_times.Uniform('1f1b', 2, 16)
    timeline = timeline_lib.FromTimes(
      times, devices=['a', 'b'], schedule='1f1b', policies='partition'
    )
    report = step_report.MakeReport([timeline], prediction)
    splits, gain = step_advice.BetterCut(report, prediction)
    # 3 x 4 = 12 and 5 x 3 = 15 is no better than 4 x 4 = 16 by much.
    self.assertEqual(splits, [3, 5])
    self.assertBetween(gain, 0.01, 0.1)

  def testGoodCutStays(self):
    prediction = _Prediction(3, cells_each=4, batch_size=16)
    report = _Report(prediction, [4.0, 4.1, 4.0])
    splits, gain = step_advice.BetterCut(report, prediction)
    self.assertEqual(splits, [4, 4, 4])
    self.assertEqual(gain, 0)
    self.assertEqual(report.advice, ())

  def testOneLargeCell(self):
    prediction = _Prediction(3, cells_each=1, batch_size=16)
    (advice,) = _Report(prediction, [1.0, 3.0, 1.0]).advice
    self.assertEqual(
      advice,
      'partition 1 takes 1.80 times the mean (predicted: 1.00) and is one '
      'cell, cell_1: make smaller cells of it, or use fewer partitions',
    )

  def testUnknownCells(self):
    (advice,) = _Report(_Prediction(3), [1.0, 2.0, 1.0]).advice
    self.assertIn('off by a factor of up to 1.50: --profile_cells', advice)
    self.assertEqual(_Report(_Prediction(3), [1.0, 1.2, 1.0]).advice, ())

  def testCellsWithoutPredictedWork(self):
    prediction = _Prediction(
      2,
      ranges=((0, 2), (2, 4)),
      cells=(partition.CellTime(0, 0),) * 4,
    )
    report = _Report(prediction, [1.0, 1.0])
    self.assertEqual(step_advice.BetterCut(report, prediction), ([2, 2], 0))


class BubbleTest(parameterized.TestCase):
  @parameterized.parameters(
    # M = 4 K divides the batch; the next larger divisor; the largest one.
    (32, 16, '16%'),
    (100, 20, '13%'),
    (8, 8, '27%'),
    (None, 16, '16%'),
  )
  def testMoreMicroBatches(self, batch_size, number, possible):
    prediction = _Prediction(4, batch_size=batch_size)
    (advice,) = _Report(prediction, [1.0] * 4, num_micro_batches=4).advice
    self.assertEqual(
      advice,
      'the bubble is 43%; filling and draining alone make it 43%, and '
      f'num_micro_batches={number} (instead of 4) would make that {possible}',
    )

  def testInterleaved(self):
    """Where the mini-batch has no more micro-batches to give."""
    kwargs = {'num_micro_batches': 4}
    prediction = _Prediction(4, cells_each=2, batch_size=4)
    (advice,) = _Report(prediction, [1.0] * 4, **kwargs).advice
    self.assertEndsWith(
      advice,
      "schedule='interleaved' with 8 partitions, two on each device, would "
      'make that 27%',
    )
    too_few = _Prediction(4, cells_each=1, batch_size=4)
    self.assertEqual(_Report(too_few, [1.0] * 4, **kwargs).advice, ())

  def testEnoughMicroBatches(self):
    prediction = _Prediction(4, batch_size=64)
    self.assertEqual(_Report(prediction, [1.0] * 4).advice, ())

  def testOnePartition(self):
    prediction = _Prediction(1, cells_each=4, batch_size=64)
    report = _Report(prediction, [1.0], num_micro_batches=1)
    self.assertEqual(report.advice, ())


class LossTest(parameterized.TestCase):
  @parameterized.parameters(
    ('1f1b', 4, "schedule='eager_1f1b'"),
    ('gpipe', 4, 'cut where cells hand on less'),
    ('interleaved', 2, 'fewer partitions on each device'),
  )
  def testTransfer(self, name, num_devices, hint):
    (advice,) = _Report(
      _Prediction(4),
      [1.0] * 4,
      name,
      num_devices=num_devices,
      transfer=3.0,
    ).advice
    self.assertRegex(advice, r"^\d\d% of the devices' time is lost, mostly to")
    self.assertEndsWith(advice, hint if name != '1f1b' else 'more inputs')
    self.assertIn(hint, advice)

  def testOverhead(self):
    # With 4 instead of 16, the bubble would call for more; overhead does not.
    for number in (4, 16):
      (advice,) = _Report(
        _Prediction(2, batch_size=64),
        [1.0] * 2,
        num_micro_batches=number,
        overhead=1.5,
      ).advice
      self.assertIn('micro-batches are too small', advice)

  def testUnevenPassesAreNobodysFault(self):
    report = _Report(_Prediction(4), [1.0] * 4, jitter=0.9)
    self.assertGreater(
      report.bubble - report.scheduled_bubble, step_advice.MAX_LOSS
    )
    self.assertEmpty([advice for advice in report.advice if 'lost' in advice])


if __name__ == '__main__':
  absltest.main()
