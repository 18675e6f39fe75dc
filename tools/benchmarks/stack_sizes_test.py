"""Tests of stack_sizes."""

from absl.testing import absltest

from tools.benchmarks import stack_sizes


class StackSizesTest(absltest.TestCase):
  def testStandard(self):
    sizes = stack_sizes.PRESETS['standard']
    self.assertEqual(sizes.params, 8 * (3 * 4 * 256**2 + 512))
    self.assertEqual(sizes.tokens_per_step, 2048)
    # 2 (multiply, add) x 3 (forward, twice backward) x weights x tokens, and
    # attention's two products of [64, 64] by 256.
    self.assertEqual(
      sizes.flops_per_step, 6 * 2048 * 8 * (12 * 256**2 + 2 * 64 * 256)
    )

  def testHeadsMustDivide(self):
    with self.assertRaisesRegex(ValueError, 'model_dim=10 .* heads=4'):
      stack_sizes.Sizes(1, 10, 16, 4, 8, 8)


if __name__ == '__main__':
  absltest.main()
