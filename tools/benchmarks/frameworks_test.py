"""Tests of frameworks."""

from absl.testing import absltest, parameterized

from tools.benchmarks import frameworks, pipeline, stack_sizes

Config = pipeline.Config
_SIZES = stack_sizes.PRESETS['standard']


class FrameworksTest(parameterized.TestCase):
  @parameterized.parameters(
    (Config(2, 8, 'gpipe'), True, False),
    (Config(2, 8, 'gpipe', policy='partition'), True, True),
    (Config(2, 8, '1f1b', policy='partition'), True, False),
    (Config(4, 2, '1f1b'), False, False),
    (Config(2, 8, 'interleaved', 2), False, False),
    (Config(2, 8, 'gpipe', policy='partition+none'), False, False),
  )
  def testCanRun(self, config, torch, lingvo):
    self.assertEqual(frameworks.TORCH.can_run(config), torch)
    self.assertEqual(frameworks.LINGVO.can_run(config), lingvo)

  def testProcesses(self):
    torch = frameworks.TORCH.processes(3, _SIZES)
    self.assertEqual([p['rank'] for p in torch], [0, 1, 2])
    self.assertEqual([p['blocks'] for p in torch], [[0, 2], [2, 5], [5, 8]])
    (lingvo,) = frameworks.LINGVO.processes(3, _SIZES)
    self.assertEqual(lingvo['blocks'], [2, 3, 3])
    self.assertEqual(lingvo['cores'], [p['core'] for p in torch])


if __name__ == '__main__':
  absltest.main()
