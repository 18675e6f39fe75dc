"""Tests of timeline_text."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.timelines import simulated_times, timeline_text
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


class TimelineTextTest(absltest.TestCase):
  def testTable(self):
    timeline = timeline_lib.FromTimes(
      simulated_times.Uniform('1f1b', 2, 4),
      devices=simulated_times.Workers(2),
      schedule='1f1b',
      policies=['partition', 'none'],
      model='a.Model',
    )
    # 0: F0 F1, R0 on 2-3 while F0 B0 of 1 are on 1-4; then 4 B 6 F 7 R 8 B 10
    # F 11 R 12 B 14 R 15 B 17: partition 1 is always sooner.
    self.assertEqual(
      timeline_text.TimelineText(timeline).splitlines(),
      [
        'a.Model, 2 partitions, 4 micro-batches, schedule 1f1b, rematerialize '
        'none/partition',
        'A step: 17.0 s from the first pass to the last. Mean seconds for a '
        'micro-batch:',
        'partition  device    policy     forward  recompute  backward  share',
        '        0  worker 0  partition   1.00 s     1.00 s    2.00 s  57.1%',
        '        1  worker 1  none        1.00 s          0    2.00 s  42.9%',
        "Shares of each device's time:",
        'device     busy  waiting  transfer  overhead',
        'worker 0  94.1%     5.9%      0.0%      0.0%',
        'worker 1  70.6%    29.4%      0.0%      0.0%',
        'Bubble: measured 17.6%, 20.0% in theory, were all passes equally '
        'long.',
      ],
    )

  def testSharedDevicesAndClocks(self):
    times = simulated_times.Uniform('interleaved', 4, 4, 2)
    times[1::2] += 0.25
    timeline = timeline_lib.FromTimes(
      times,
      devices=simulated_times.Workers(4, 2),
      schedule='gpipe',
      policies='partition',
    )
    text = timeline_text.TimelineText(timeline)
    self.assertStartsWith(
      text,
      '4 partitions on 2 devices, 4 micro-batches, schedule gpipe, '
      'rematerialize partition\n',
    )
    self.assertNotIn('in theory', text)
    self.assertIn('shifted: worker 1 by -250 ms. ', text)

  def testContradictingClocks(self):
    times = simulated_times.Uniform('gpipe', 2, 4)
    times[1, 0] -= 2.5
    times[1, 3] += 4
    timeline = timeline_lib.FromTimes(
      times,
      devices=simulated_times.Workers(2),
      schedule='gpipe',
      policies='partition',
    )
    (line,) = timeline_text.ClockText(timeline)
    self.assertStartsWith(line, 'Clocks contradict each other by 3.00 s: ')


class FormatTest(parameterized.TestCase):
  @parameterized.parameters(
    (12.345, '12.3 s'),
    (1.0, '1.00 s'),
    (0.9996, '1.00 s'),
    (0.99949, '999 ms'),
    (0.0456, '45.6 ms'),
    (0.000789, '789 us'),
    (2e-7, '0.20 us'),
    (0, '0'),
  )
  def testSeconds(self, seconds, text):
    self.assertEqual(timeline_text.Seconds(seconds), text)

  @parameterized.parameters(
    (
      ['/job:worker/replica:0/task:0/device:CPU:0'] * 2
      + ['/job:worker/replica:0/task:1/device:CPU:0'],
      ['worker 0', 'worker 1'],
    ),
    (
      [f'/job:worker/replica:0/task:1/device:GPU:{i}' for i in range(2)],
      ['worker 1 GPU:0', 'worker 1 GPU:1'],
    ),
    (['/device:CPU:0', '/device:CPU:1'], ['CPU:0', 'CPU:1']),
    (['/device:CPU:0'], ['CPU:0']),
    (['left', 'right'], ['left', 'right']),
    (['/job:worker/task:0', 'worker 0'], ['/job:worker/task:0', 'worker 0']),
  )
  def testShortNames(self, devices, names):
    short = timeline_text.ShortNames(devices)
    self.assertEqual(list(short), list(dict.fromkeys(devices)))
    self.assertEqual(list(short.values()), names)


if __name__ == '__main__':
  absltest.main()
