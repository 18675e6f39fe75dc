"""Tests of step_report."""

from __future__ import annotations

import json

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition, plan
from lingvo_gpipe.gpipe.schedules import schedule
from lingvo_gpipe.gpipe.timelines import simulated_times, step_report
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def _Timeline(forward, name='1f1b', num_micro_batches=8, **kwargs):
  num_partitions = len(forward)
  table = schedule.MakeSchedule(name, num_partitions, num_micro_batches)
  times = simulated_times.Times(
    table,
    forward,
    [2 * f for f in forward],
    [*forward[:-1], 0],
    epoch=1.75e9,
    **kwargs,
  )
  return timeline_lib.FromTimes(
    times,
    devices=simulated_times.Workers(num_partitions),
    schedule=name,
    policies='partition',
    model='a.Model',
  )


def _Prediction(num_partitions, **kwargs):
  return step_report.Prediction(
    **{
      'shares': (1 / num_partitions,) * num_partitions,
      'balance': 1.0,
      'bubble': 0.25,
      **kwargs,
    }
  )


class MakeReportTest(parameterized.TestCase):
  def testNumbers(self):
    # Work for a micro-batch: 1 + 1 + 2 and 2 + 4.
    steps = [_Timeline([scale, 2 * scale]) for scale in (1.0, 1.1, 5.0)]
    report = step_report.MakeReport(steps, _Prediction(2, shares=(0.3, 0.7)))
    self.assertEqual(report.num_steps, 3)
    first, second = report.partitions
    self.assertAlmostEqual(first.forward, 1.1, 5)
    self.assertAlmostEqual(first.recompute, 1.1, 5)
    self.assertAlmostEqual(first.backward, 2.2, 5)
    self.assertEqual(second.recompute, 0)
    self.assertAlmostEqual(first.share, 0.4, 5)
    self.assertEqual(first.predicted_share, 0.3)
    self.assertAlmostEqual(report.balance, 10 / 12, 5)
    # Partition 1 begins at 1, works 8 x 6, and 0 ends after its B of 2.
    self.assertAlmostEqual(report.step_seconds, 1.1 * 51, 4)
    self.assertAlmostEqual(report.shortest_seconds, 51, 4)
    self.assertAlmostEqual(report.longest_seconds, 5 * 51, 4)
    self.assertAlmostEqual(report.bubble, 1 - 80 / 102, 5)
    # Nothing but the passes took time.
    self.assertAlmostEqual(report.scheduled_bubble, report.bubble, 5)
    self.assertAlmostEqual(report.theoretical_bubble, 1 / 9)
    self.assertAlmostEqual(
      report.waiting + report.transfer + report.overhead, report.bubble, 5
    )

  def testLossesAreWhatTheScheduleDoesNotExplain(self):
    alone = step_report.MakeReport([_Timeline([1.0] * 3)], _Prediction(3))
    report = step_report.MakeReport(
      [_Timeline([1.0] * 3, transfer=0.5)], _Prediction(3)
    )
    self.assertAlmostEqual(report.scheduled_bubble, alone.bubble, 5)
    self.assertGreater(report.bubble, alone.bubble + 0.03)

  def testSharedDevices(self):
    times = simulated_times.Uniform('1f1b', 2, 4)
    timeline = timeline_lib.FromTimes(
      times, devices=['a', 'a'], schedule='1f1b', policies='none'
    )
    report = step_report.MakeReport([timeline], _Prediction(2))
    self.assertIsNone(report.scheduled_bubble)
    self.assertIsNone(report.theoretical_bubble)
    self.assertNotIn('on this schedule', report.ToText())

  def testOtherNumberOfPartitions(self):
    with self.assertRaisesRegex(ValueError, 'for 3 partitions, but 2 were'):
      step_report.MakeReport([_Timeline([1.0, 1.0])], _Prediction(3))

  def testJson(self):
    report = step_report.MakeReport([_Timeline([1.0, 3.0])], _Prediction(2))
    values = json.loads(json.dumps(report.ToJson()))
    self.assertEqual(values['partitions'][1]['share'], 9 / 13)
    self.assertEqual(values['advice'], list(report.advice))
    self.assertNotEmpty(report.advice)
    self.assertEqual(values['num_steps'], 1)

  def testText(self):
    report = step_report.MakeReport(
      [_Timeline([1.0, 2.0])], _Prediction(2, shares=(0.4, 0.6))
    )
    self.assertEqual(
      report.ToText().splitlines(),
      [
        'a.Model, 2 partitions, 8 micro-batches, schedule 1f1b, rematerialize '
        'partition',
        'Step: 51.0 s, median of 1 (51.0 s to 51.0 s), from the first pass to '
        'the last. For a micro-batch:',
        'partition  device    policy     forward  recompute  backward  share  '
        'predicted',
        '        0  worker 0  partition   1.00 s     1.00 s    2.00 s  40.0%  '
        '    40.0%',
        '        1  worker 1  partition   2.00 s          0    4.00 s  60.0%  '
        '    60.0%',
        'Balance: measured 83.3%, predicted 100.0%.',
        'Bubble: measured 21.6%, predicted 25.0%, 21.6% with these passes on '
        'this schedule, 11.1% were all passes equally long.',
        "Devices' time: computing 78.4%, waiting for others 21.6%, transfer "
        '0.0%, overhead 0.0%.',
      ],
    )


class FromPlanTest(absltest.TestCase):
  def testFromPlan(self):
    cells = [partition.CellTime(f, 2 * f) for f in (1, 1, 1, 1, 1, 1, 1)]

    class _Cost:
      """The fields of a CellCost that a plan reads."""

      def __init__(self, index, time):
        self.name = f'cell_{index}'
        self.forward_flops, self.backward_flops = time
        self.params = self.param_bytes = self.activation_bytes = 1
        self.input_bytes = self.output_bytes = self.gradient_bytes = 1
        self.batch_fields = ()

    planned = plan.MakePlan(
      [_Cost(i, cell) for i, cell in enumerate(cells)],
      replica_devices=[['a', 'b'], ['c', 'd']],
      num_micro_batches=8,
      micro_batch_size=4,
      schedule='1f1b',
    )
    prediction = step_report.FromPlan(planned, cells)
    self.assertAlmostEqual(sum(prediction.shares), 1)
    self.assertEqual(list(prediction.ranges), planned.partitions)
    self.assertEqual(prediction.cell_names[6], 'cell_6')
    self.assertEqual(prediction.batch_size, 32)
    # The plan plays the same passes through the same schedule.
    first, last = [end - start for start, end in prediction.ranges]
    report = step_report.MakeReport(
      [_Timeline([float(first), float(last)])], prediction
    )
    self.assertAlmostEqual(report.bubble, prediction.bubble, 5)
    self.assertAlmostEqual(report.balance, prediction.balance, 5)
    for measured in report.partitions:
      self.assertAlmostEqual(measured.share, measured.predicted_share, 5)
    self.assertEqual(report.advice, ())


if __name__ == '__main__':
  absltest.main()
