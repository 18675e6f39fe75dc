"""Runs what docs/tutorial.md shows, as it is written there."""

import os
import re
import subprocess
import sys

from absl.testing import absltest

_TUTORIAL = os.path.join(os.path.dirname(__file__), 'tutorial.md')


def _Blocks(language):
  with open(_TUTORIAL, encoding='utf-8') as f:
    return re.findall(rf'```{language}\n(.*?)```', f.read(), re.DOTALL)


def _Run(code, folder):
  path = os.path.join(folder, 'my_pipeline.py')
  with open(path, 'w', encoding='utf-8') as f:
    f.write(code)
  environment = {**os.environ, 'PYTHONPATH': ':'.join(filter(None, sys.path))}
  return subprocess.run(
    [sys.executable, path],
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )


def _Losses(output):
  return [float(x) for x in re.findall(r'step \d+: loss (\S+)', output)]


class TutorialTest(absltest.TestCase):
  def testThePipelineTrains(self):
    code = _Blocks('python')[0]
    results = []
    for k in (2, 3):
      changed = code.replace('num_partitions=2', f'num_partitions={k}').replace(
        'ConfigureLogicalCpus(2)', f'ConfigureLogicalCpus({k})'
      )
      self.assertEqual(changed == code, k == 2)
      result = _Run(changed, self.create_tempdir().full_path)
      self.assertEqual(result.returncode, 0, result.stderr)
      self.assertIn(f'7 cells in {k} partitions', result.stdout)
      results.append(_Losses(result.stdout))
    self.assertLen(results[0], 6)
    self.assertLess(results[0][-1], 0.5 * results[0][0])
    # "The losses stay the same to the last digit."
    self.assertEqual(results[0], results[1])


if __name__ == '__main__':
  absltest.main()
