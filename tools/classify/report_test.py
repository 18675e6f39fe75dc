"""Tests of report."""

import json

import numpy as np
from absl.testing import absltest

from tools.classify import report

_NAMES = ['cat', 'tiger cat', 'dog', 'fish']
_PROBABILITIES = np.array([0.125, 0.5, 0.25, 0.125], np.float32)


class ReportTest(absltest.TestCase):
  def testTop(self):
    self.assertEqual(report.Top(_PROBABILITIES, 3), [1, 2, 0])
    self.assertEqual(report.Top(_PROBABILITIES, 9), [1, 2, 0, 3])

  def testText(self):
    self.assertEqual(
      report.TextLine('a b.png', _PROBABILITIES, _NAMES, 2),
      'a b.png: tiger cat 0.5000, dog 0.2500',
    )

  def testJson(self):
    line = report.JsonLine('\udcff.png', _PROBABILITIES, _NAMES, 2)
    self.assertEqual(
      json.loads(line),
      {
        'file': '\udcff.png',
        'classes': [
          {'class': 1, 'name': 'tiger cat', 'probability': 0.5},
          {'class': 2, 'name': 'dog', 'probability': 0.25},
        ],
      },
    )
    self.assertNotIn('\n', line)
    line.encode('ascii')

  def testProgress(self):
    clock, lines = [10.0], []
    progress = report.Progress(2000, lines.append, lambda: clock[0])
    for seconds, count in ((11, 100), (15, 500), (16, 600), (20, 1000)):
      clock[0] = seconds
      progress.Done(count)
    clock[0] = 60
    progress.Done(2000)
    self.assertEqual(
      lines,
      [
        '500 of 2,000 pictures, 100/s, ETA 15s',
        '1,000 of 2,000 pictures, 100/s, ETA 10s',
      ],
    )


if __name__ == '__main__':
  absltest.main()
