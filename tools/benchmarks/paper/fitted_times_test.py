"""Tests of fitted_times."""

from absl.testing import absltest

from lingvo_gpipe.gpipe.planning import partition
from tools.benchmarks.paper import fitted_times

_Time = partition.CellTime


class FitTest(absltest.TestCase):
  def testLine(self):
    # 1 s beside and 2 s an example; backward 4 s an example.
    measured = {1: [_Time(3.0, 4.0)], 4: [_Time(9.0, 16.0)]}
    times = fitted_times.Fit(measured, [1, 2, 4, 100])
    self.assertEqual(times[1], [_Time(3.0, 4.0)])
    self.assertEqual(times[2], [_Time(5.0, 8.0)])
    self.assertEqual(times[4], [_Time(9.0, 16.0)])
    self.assertEqual(times[100], [_Time(201.0, 400.0)])

  def testTimesNeverShrinkWithSize(self):
    # The larger one was measured in a faster moment.
    measured = {2: [_Time(3.0, 3.0)], 4: [_Time(2.0, 2.0)]}
    times = fitted_times.Fit(measured, [3, 8, 1])
    self.assertEqual(times[3], [_Time(3.0, 3.0)])
    self.assertEqual(times[8], [_Time(3.0, 3.0)])
    # Below both: no less than its share.
    self.assertEqual(times[1], [_Time(3.0, 3.0)])

  def testBelowBothIsAtLeastItsShare(self):
    measured = {4: [_Time(4.0, 4.0)], 8: [_Time(16.0, 8.0)]}
    # The line through the forward passes is negative at 1.
    self.assertEqual(fitted_times.Fit(measured, [1])[1], [_Time(1.0, 1.0)])

  def testTwoSizesAreNeeded(self):
    with self.assertRaisesRegex(ValueError, 'two sizes .* not 1'):
      fitted_times.Fit({1: []}, [1])


if __name__ == '__main__':
  absltest.main()
