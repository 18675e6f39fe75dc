"""Tests of published: what the paper's figures must satisfy."""

from absl.testing import absltest

from tools.benchmarks.paper import published


class PublishedTest(absltest.TestCase):
  def testTwelveBytesForEachParameter(self):
    """Of RMSProp, as the caption of Table 1 says; within what is printed."""
    for size in published.TRANSFORMER_SIZES:
      expected = 12 * size.parameters
      self.assertAlmostEqual(
        size.parameter_memory / expected, 1.0, delta=0.011, msg=size.setting
      )
    for size in published.AMOEBANET_SIZES:
      expected = 12 * size.parameters
      self.assertAlmostEqual(
        size.parameter_memory / expected, 1.0, delta=0.15, msg=size.setting
      )

  def testTransformerSizesFollowFromL(self):
    for size in published.TRANSFORMER_SIZES:
      count = size.size * 50_358_272 + 131_104_000
      self.assertAlmostEqual(count / size.parameters, 1.0, delta=0.005)

  def testThroughputIsRelative(self):
    for figures in published.THROUGHPUT.values():
      self.assertEqual(figures[2, 1], 1.0)
      self.assertLen(figures, 9)
    for figures in published.SLOW_LINK_THROUGHPUT.values():
      self.assertEqual(figures[2], 1.0)

  def testBreakdownIsWhole(self):
    self.assertAlmostEqual(sum(published.BREAKDOWN.values()), 1.0)


if __name__ == '__main__':
  absltest.main()
