"""Tests of step_timing."""

import json
import os
from unittest import mock

import numpy as np
from absl.testing import absltest

from lingvo_gpipe.gpipe.timelines import step_report
from lingvo_gpipe.jobs import logdir, step_timing

# Two partitions, two micro-batches, see loop.LoopResult.
_TIMES = np.array(
  [
    [[0, 1, 2, 2, 5, 7], [1, 2, 7, 7, 9, 11]],
    [[1, 2, 2, 2, 2, 4], [4, 5, 5, 5, 5, 7]],
  ],
  np.float64,
)


def _Net():
  return mock.Mock(
    plan=mock.Mock(
      devices=('/device:CPU:0', '/device:CPU:1'),
      schedule='1f1b',
      stages=[mock.Mock(rematerialize='none')] * 2,
    )
  )


class StepTimingTest(absltest.TestCase):
  def testTimeline(self):
    timeline = step_timing.MakeTimeline(_Net(), list(_TIMES), 'a.Model')
    self.assertEqual(timeline.step_seconds, 11)
    self.assertEqual(timeline.policies, ('none', 'none'))
    self.assertEqual(timeline.model, 'a.Model')
    # Each device computes six seconds.
    self.assertAlmostEqual(timeline.bubble, 1 - 12 / 22)

  def testReportsOnceOfStepsThreeToSeven(self):
    directory = logdir.LogDir(self.create_tempdir().full_path)
    lines = []
    timing = step_timing.StepTiming(
      _Net(),
      model='a.Model',
      logdir=directory,
      pictures=False,
      show=lines.append,
    )
    prediction = step_report.Prediction((0.5, 0.5), balance=1.0, bubble=0.25)
    # How long a step takes tells which one it is.
    with mock.patch.object(step_report, 'FromPlan', return_value=prediction):
      for step in range(1, 10):
        self.assertLen(lines, int(step > 7))
        timing.Add(list(step * _TIMES))
    self.assertLen(lines, 1)
    self.assertIn('median of 5', lines[0])
    report = directory.ReadJson('step_report.json')
    self.assertEqual(report['shortest_seconds'], 33)
    self.assertEqual(report['longest_seconds'], 77)
    with open(directory.PathOf('timeline.json')) as f:
      events = json.load(f)['events']
    self.assertEqual(max(event['end'] for event in events), 55)
    self.assertFalse(os.path.exists(directory.PathOf('timeline.png')))


if __name__ == '__main__':
  absltest.main()
