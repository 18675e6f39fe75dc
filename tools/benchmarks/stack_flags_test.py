"""Tests of stack_flags."""

from absl.testing import absltest, flagsaver, parameterized

from tools.benchmarks import stack_flags, stack_sizes


class StackFlagsTest(parameterized.TestCase):
  def testPresetAndChanges(self):
    self.assertEqual(stack_flags.Sizes(), stack_sizes.PRESETS['standard'])
    with flagsaver.flagsaver(preset='small', layers=7, batch=64):
      self.assertEqual(
        stack_flags.Sizes(), stack_sizes.Sizes(7, 16, 32, 2, 8, 64)
      )

  def testSizesThatDoNotFit(self):
    with flagsaver.flagsaver(heads=3):
      with self.assertRaisesRegex(ValueError, '--heads'):
        stack_flags.Sizes()

  def testIntegers(self):
    self.assertEqual(stack_flags.Integers('x', ['4', ' 2', '4']), [4, 2])

  @parameterized.parameters('0', '-1', 'two', '', '1.5')
  def testNoInteger(self, value):
    with self.assertRaisesRegex(ValueError, f"^--x=1,{value}: '{value}' must"):
      stack_flags.Integers('x', ['1', value])


if __name__ == '__main__':
  absltest.main()
