"""Runs what tutorial.md and cells.md show, as it is written there."""

import os
import re
import subprocess
import sys

from absl.testing import absltest

from lingvo_gpipe import child_process

_FOLDER = os.path.dirname(__file__)


def _Blocks(language, page='tutorial.md'):
  with open(os.path.join(_FOLDER, page), encoding='utf-8') as f:
    return re.findall(rf'```{language}\n(.*?)```', f.read(), re.DOTALL)


def _Run(folder, *args):
  environment = child_process.Environment()
  return subprocess.run(
    [sys.executable, *args],
    cwd=folder,
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )


def _Losses(output):
  return [float(x) for x in re.findall(r'step \d+: loss (\S+)', output)]


class TutorialTest(absltest.TestCase):
  def _Save(self, name, code):
    return self.create_tempfile(f'mine/{name}', code).full_path

  def testThePipelineTrains(self):
    code = _Blocks('python')[0]
    results = []
    for k in (2, 3):
      changed = code.replace('K = 2 ', f'K = {k} ')
      self.assertEqual(changed == code, k == 2)
      path = self._Save('my_pipeline.py', changed)
      result = _Run(os.path.dirname(path), path)
      self.assertEqual(result.returncode, 0, result.stderr)
      self.assertIn(f'7 cells in {k} partitions', result.stdout)
      results.append(_Losses(result.stdout))
    self.assertLen(results[0], 6)
    self.assertLess(results[0][-1], 0.5 * results[0][0])
    # "The printed losses stay the same."
    self.assertEqual(results[0], results[1])

  def testTheCellsTrain(self):
    (code,) = _Blocks('python', 'cells.md')
    path = self._Save('my_cells.py', code)
    result = _Run(os.path.dirname(path), path)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn('rematerialize auto (partition, none)', result.stdout)
    losses = _Losses(result.stdout)
    self.assertLen(losses, 4)
    self.assertLess(losses[-1], losses[0] - 0.5)

  def testTheRegisteredModelTrains(self):
    path = self._Save('my_models.py', _Blocks('python')[1])
    logdir = self.create_tempdir().full_path
    result = _Run(
      os.path.dirname(path),
      '-m',
      'lingvo_gpipe.trainer',
      '--model=my_models.Sine',
      f'--logdir={logdir}',
      '--worker_split_size=2',
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    loss = re.search(r'^test loss: (\S+)$', result.stdout, re.MULTILINE)
    self.assertLess(float(loss.group(1)), 0.3)


if __name__ == '__main__':
  absltest.main()
