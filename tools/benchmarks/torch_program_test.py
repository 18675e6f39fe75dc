"""Tests of torch_program, where PyTorch is installed."""

from absl.testing import absltest, parameterized

from tools.benchmarks import framework_checks, frameworks, pipeline


class TorchProgramTest(parameterized.TestCase):
  @parameterized.parameters(1, 2)
  def testTrainsTheSameModel(self, num_devices):
    framework_checks.CheckTraining(
      self,
      frameworks.TORCH,
      [
        pipeline.Config(num_devices, 4, schedule, policy=policy)
        for schedule in ('gpipe', '1f1b')
        for policy in ('none', 'cell', 'partition')
      ],
    )


if __name__ == '__main__':
  absltest.main()
