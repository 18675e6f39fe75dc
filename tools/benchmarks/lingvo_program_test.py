"""Tests of lingvo_program, where Lingvo is installed."""

from absl.testing import absltest, parameterized

from tools.benchmarks import framework_checks, frameworks, pipeline


class LingvoProgramTest(parameterized.TestCase):
  @parameterized.parameters(1, 2)
  def testTrainsTheSameModel(self, num_devices):
    framework_checks.CheckTraining(
      self,
      frameworks.LINGVO,
      [
        pipeline.Config(num_devices, m, 'gpipe', policy='partition')
        for m in (2, 4)
      ],
    )


if __name__ == '__main__':
  absltest.main()
