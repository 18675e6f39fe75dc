"""A short form of tools/fuzz, and that it finds what is wrong."""

import random

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition
from tools.benchmarks import tool_process
from tools.fuzz import checkpoints, plans, runner, texts


class PropertiesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('params', texts.ParamsText, 400),
    ('override', texts.Override, 400),
    ('partition', plans.Partition, 200),
    ('schedule', plans.Schedule, 150),
  )
  def testHolds(self, name, check, cases):
    runner.Run(name, check, cases=cases)

  def testCheckpoints(self):
    with checkpoints.Checkpoints() as check:
      runner.Run('checkpoint', check, cases=120)

  def testMostDamageIsNoticed(self):
    """Damaged text is not just accepted."""
    refused = 0
    for i in range(200):
      text = texts.Damage(runner.Random('x', 1, i), texts.MakeParams().ToText())
      try:
        texts.MakeParams().FromText(text)
      except (AttributeError, TypeError, ValueError):
        refused += 1
    self.assertGreater(refused, 50)


class RunnerTest(absltest.TestCase):
  def testNamesTheCase(self):
    def _Check(rng):
      if rng.random() > 0.9:
        raise ValueError('oh no')

    with self.assertRaisesRegex(
      runner.Failure, r'p does not hold in case (\d+): ValueError: oh no'
    ) as caught:
      runner.Run('p', _Check, cases=1000, seed=5)
    case = int(str(caught.exception).split('--first=')[1].split()[0])
    with self.assertRaises(runner.Failure):
      runner.Run('p', _Check, cases=1, first=case, seed=5)
    done = []
    runner.Run('p', _Check, cases=case, seed=5, progress=done.append)
    self.assertLen(done, case)

  def testFindsAWrongCut(self):
    with (
      absltest.mock.patch.object(
        partition,
        'Partition',
        lambda costs, k, recompute: [
          (i, i + 1 if i < k - 1 else len(costs)) for i in range(k)
        ],
      ),
      self.assertRaisesRegex(runner.Failure, 'is more than'),
    ):
      runner.Run('partition', plans.Partition, cases=200)

  def testCasesAreTheSameEachTime(self):
    a, b = (runner.Random('n', 1, 7) for _ in range(2))
    self.assertIsInstance(a, random.Random)
    self.assertEqual(a.random(), b.random())
    self.assertNotEqual(a.random(), runner.Random('n', 2, 7).random())


class ToolTest(absltest.TestCase):
  def testTool(self):
    result = tool_process.RunModule(
      'tools.fuzz', '--only=schedule,override', '--cases=20'
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEqual(
      result.stdout, 'schedule: 20 cases hold\noverride: 20 cases hold\n'
    )
    result = tool_process.RunModule('tools.fuzz', '--only=luck')
    self.assertEqual(result.returncode, 2)
    self.assertIn('--only=luck: choose from params', result.stderr)


if __name__ == '__main__':
  absltest.main()
