"""Tests of pipeline_flags."""

from absl.testing import absltest, flagsaver, parameterized

from tools.benchmarks import pipeline_flags, stack_sizes

_SIZES = stack_sizes.PRESETS['small']


class PipelineFlagsTest(parameterized.TestCase):
  def testCombinations(self):
    with flagsaver.flagsaver(
      workers=['1', '2'],
      micro_batches=['2', '4'],
      schedules=['gpipe', 'interleaved'],
      policies=['none', 'partition+none'],
    ):
      configs = pipeline_flags.Configs(_SIZES, unrolled=True)
    self.assertEqual(
      [c.name for c in configs],
      [
        'K=1 M=2 1f1b none',
        'K=1 M=2 unrolled none',
        'K=1 M=4 1f1b none',
        'K=1 M=4 unrolled none',
        'K=2 M=2 gpipe none',
        'K=2 M=2 interleaved x2 none',
        'K=2 M=2 gpipe partition+none',
        'K=2 M=4 gpipe none',
        'K=2 M=4 interleaved x2 none',
        'K=2 M=4 gpipe partition+none',
      ],
    )
    self.assertEqual(configs[-1].policies, ['partition', 'none'])
    self.assertEqual(configs[5].policies, ['none'] * 4)
    self.assertEqual(configs[5].MakeSchedule().num_devices, 2)

  @parameterized.parameters(
    ({'workers': ['5']}, 'has 5 partitions, more than the 4 blocks'),
    ({'workers': ['0']}, "--workers=0: '0' must be a number of 1 or more"),
    ({'micro_batches': ['3']}, '3 does not divide the 8 examples'),
    ({'schedules': ['g']}, "'g' is not one of gpipe"),
    ({'policies': ['all']}, "'all' is not one of none, cell, partition"),
    ({'policies': ['none+cell+none']}, 'is for other numbers of partitions'),
  )
  def testMistakes(self, values, message):
    with flagsaver.flagsaver(**values):
      with self.assertRaisesRegex(ValueError, message):
        pipeline_flags.Configs(_SIZES)


if __name__ == '__main__':
  absltest.main()
