"""Tests of layer_search."""

from absl.testing import absltest, parameterized

from tools.benchmarks import layer_search


class LayerSearchTest(parameterized.TestCase):
  @parameterized.product(
    fixed=(0.0, 40.0, 96.0), slope=(1.0, 2.5, 30.0), first=(1, 4)
  )
  def testLinear(self, fixed, slope, first):
    trials = []

    def _Try(size):
      trials.append(size)
      taken = fixed + slope * size
      return taken if taken <= 100.0 else None

    found = layer_search.LargestFitting(_Try, 100.0, first=first)
    self.assertEqual(found, max(0, int((100.0 - fixed) / slope)))
    self.assertLen(set(trials), len(trials), 'a size was tried twice')
    self.assertLessEqual(len(trials), 6)

  def testSurprises(self):
    # Fails from 11 on although nothing seemed to grow.
    self.assertEqual(
      layer_search.LargestFitting(lambda n: 1.0 if n < 11 else None, 100.0), 10
    )

  def testNothingFits(self):
    self.assertEqual(
      layer_search.LargestFitting(lambda n: None, 1.0, first=3), 0
    )


if __name__ == '__main__':
  absltest.main()
