"""Tests of timeline."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import schedule
from lingvo_gpipe.gpipe.timelines import simulated_times
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib

# Two partitions, two micro-batches, by hand. Device a runs F0 F1, then computes
# F0 again while it waits for the gradient; device b runs F0 B0 F1 B1.
#   a  0-1 1-2   R 2-3  B 5-7   R 7-8 B 9-11
#   b      F 1-2 B 2-4  F 4-5 B 5-7
_TIMES = np.array(
  [
    [[0, 1, 2, 3, 5, 7], [1, 2, 7, 8, 9, 11]],
    [[1, 2, 2, 2, 2, 4], [4, 5, 5, 5, 5, 7]],
  ],
  np.float64,
)
_DEVICES = ['/device:CPU:0', '/device:CPU:1']


def _Timeline(times=_TIMES, **kwargs):
  kwargs = {
    'devices': _DEVICES,
    'schedule': '1f1b',
    'policies': ['partition', 'none'],
    'model': 'a.Model',
    **kwargs,
  }
  return timeline_lib.FromTimes(times, **kwargs)


class FromTimesTest(parameterized.TestCase):
  def testByHand(self):
    timeline = _Timeline(1.75e9 + _TIMES)
    kinds = [(e.partition, e.kind[0], e.start, e.end) for e in timeline.events]
    self.assertEqual(
      kinds,
      [
        (0, 'f', 0, 1),
        (0, 'f', 1, 2),
        (1, 'f', 1, 2),
        (0, 'r', 2, 3),
        (1, 'b', 2, 4),
        (1, 'f', 4, 5),
        (0, 'b', 5, 7),
        (1, 'b', 5, 7),
        (0, 'r', 7, 8),
        (0, 'b', 9, 11),
      ],
    )
    self.assertEqual(timeline.events[1].micro_batch, 1)
    self.assertEqual(timeline.events[2].device, '/device:CPU:1')
    self.assertEqual(timeline.step_seconds, 11)
    self.assertEqual(
      timeline.busy_seconds, {'/device:CPU:0': 8, '/device:CPU:1': 6}
    )
    self.assertAlmostEqual(timeline.bubble, 1 - 14 / 22)
    self.assertAlmostEqual(timeline.theoretical_bubble, 1 / 3)
    self.assertEqual(timeline.pass_seconds, ((1, 1, 2), (1, 0, 2)))
    np.testing.assert_allclose(timeline.shares, [8 / 14, 6 / 14])
    self.assertEqual(timeline.clock_shifts, {})

  def testShiftsClocks(self):
    times = _TIMES.copy()
    times[1] += 3
    timeline = _Timeline(times, devices=simulated_times.Workers(2))
    self.assertEqual(
      # What 1 ends at 7 (B0), and 0 needs at 5.
      timeline.clock_shifts,
      {'/job:worker/replica:0/task:1': -2},
    )
    self.assertEqual(timeline.step_seconds, 11)

  def testAListOfArraysAndOnePolicy(self):
    timeline = _Timeline(list(_TIMES), policies='none')
    self.assertEqual(timeline.policies, ('none', 'none'))
    self.assertEqual(timeline.events, _Timeline().events)

  @parameterized.named_parameters(
    ('Shape', {'times': _TIMES[..., :5]}, 'shape'),
    ('Devices', {'devices': ['/device:CPU:0']}, '1 devices'),
    ('Policies', {'policies': ['none'] * 3}, '3 policies'),
    ('NotFinite', {'times': _TIMES + [0, np.nan, 0, 0, 0, 0]}, 'not finite'),
    ('Backwards', {'times': -_TIMES}, 'end before they start'),
    ('Nothing', {'times': 0 * _TIMES}, 'no pass that took any time'),
  )
  def testMistakes(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      _Timeline(**kwargs)


class BubbleTest(parameterized.TestCase):
  @parameterized.product(
    name=('gpipe', '1f1b', 'interleaved'), num_micro_batches=(4, 8, 12)
  )
  def testFormulaIsWhatEqualPassesMake(self, name, num_micro_batches):
    """F and B equally long: measured and theoretical bubble are equal."""
    num_partitions = 8 if name == 'interleaved' else 4
    table = schedule.MakeSchedule(
      name, num_partitions, num_micro_batches, num_devices=4
    )
    times = simulated_times.Times(
      table,
      [1.0] * num_partitions,
      [1.0] * num_partitions,
      [0.0] * num_partitions,
      epoch=1e6,
    )
    # The last partition runs F right before B; in the table of 'gpipe' it does
    # so beforehand. Its F's are where they belong for the other schedules only.
    timeline = _Timeline(
      times,
      devices=simulated_times.Workers(num_partitions, 4),
      schedule=name,
      policies='none',
    )
    if name != 'gpipe':
      self.assertAlmostEqual(timeline.bubble, timeline.theoretical_bubble)
    chunks = num_partitions // 4
    self.assertAlmostEqual(
      timeline.theoretical_bubble, 3 / (chunks * num_micro_batches + 3)
    )

  def testSharedDeviceHasNoFormula(self):
    times = simulated_times.Uniform('1f1b', 4, 8)
    for devices in ([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 2, 0]):
      names = [f'/device:CPU:{d}' for d in devices]
      timeline = _Timeline(times, devices=names, policies='none')
      self.assertIsNone(timeline.theoretical_bubble)
    timeline = _Timeline(
      times,
      devices=['/device:CPU:0', '/device:CPU:0'] * 2,
      schedule='interleaved',
      policies='none',
    )
    self.assertEqual(timeline.theoretical_bubble, 0.0)


class JsonTest(parameterized.TestCase):
  def testRoundTrip(self):
    times = simulated_times.Uniform('interleaved', 4, 8, 2, jitter=0.3)
    times[0] += 0.125
    timeline = _Timeline(
      times,
      devices=simulated_times.Workers(4, 2),
      schedule='interleaved',
      policies='partition',
      tolerance=1e-3,
    )
    text = json.dumps(timeline.ToJson())
    self.assertEqual(timeline_lib.FromJson(json.loads(text)), timeline)

  @parameterized.named_parameters(
    ('Format', lambda x: x.update(format='png'), "'png' instead of"),
    ('Missing', lambda x: x.pop('devices'), "KeyError: 'devices'"),
    ('Unknown', lambda x: x.update(color='red'), 'color'),
    ('NoEvents', lambda x: x['events'].clear(), 'no events'),
    ('Partition', lambda x: x['events'][3].update(partition=2), 'no event of'),
    ('Negative', lambda x: x['events'][3].update(partition=-1), 'no event of'),
    ('Kind', lambda x: x['events'][0].update(kind='idle'), 'no event of'),
    ('Times', lambda x: x['events'][0].update(end=-1), 'no event of'),
    ('Text', lambda x: x['events'][0].update(end='1'), 'TypeError'),
  )
  def testDamaged(self, damage, message):
    values = _Timeline().ToJson()
    damage(values)
    with self.assertRaisesRegex(ValueError, message):
      timeline_lib.FromJson(values)

  def testNoObject(self):
    with self.assertRaisesRegex(ValueError, 'no recorded timeline'):
      timeline_lib.FromJson([1, 2])


class MedianTest(absltest.TestCase):
  def testMedian(self):
    steps = [_Timeline(_TIMES * f, model=str(f)) for f in (3, 1, 9, 2)]
    self.assertEqual(timeline_lib.Median(steps).model, '2')
    self.assertEqual(timeline_lib.Median(steps[:3]).model, '3')
    self.assertIs(timeline_lib.Median(steps[:1]), steps[0])
    with self.assertRaisesRegex(ValueError, 'no step'):
      timeline_lib.Median([])


class RoundRobinTest(absltest.TestCase):
  def testRoundRobin(self):
    timeline = _Timeline()
    self.assertTrue(timeline.is_round_robin)
    for devices, expected in (
      ('abab', True),
      ('aaaa', True),
      ('aabb', False),
      ('aba', False),
    ):
      shared = dataclasses.replace(timeline, devices=tuple(devices))
      self.assertEqual(shared.is_round_robin, expected, devices)


if __name__ == '__main__':
  absltest.main()
