"""Tests of shell, at a real prompt."""

import contextlib
import io
import os
import subprocess
import sys

from absl.testing import absltest

from lingvo_gpipe import child_process, trainer, trainer_process
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, shell

_MODEL = f'{trainer_process.MODELS}.Tiny'


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class ShellTest(absltest.TestCase):
  def _Names(self, **options):
    options = flags.Options(model=_MODEL, mode='shell', **options)
    options.Check()
    with contextlib.redirect_stdout(io.StringIO()):
      return shell.Names(options)

  def testARunsCheckpoint(self):
    logdir = self.create_tempdir().full_path
    with contextlib.redirect_stdout(io.StringIO()):
      options = flags.Options(model=_MODEL, logdir=logdir, max_steps=20)
      self.assertEqual(trainer.Run(options), 0)
    files = sorted(os.listdir(logdir))
    names = self._Names(logdir=logdir, num_partitions=2)
    self.assertEqual(names['step'], 20)
    batch = names['Batch']('dev')
    fresh = self._Names()
    self.assertEqual(fresh['step'], 0)
    result = names['Eval'](batch)
    self.assertLess(result.loss, fresh['Eval'](batch).loss)
    self.assertEqual(result.logits.shape[0], batch['labels'].shape[0])
    gradients = names['Gradients'](names['Batch']('train', 3))
    self.assertGreater(float(gradients.loss), 0.0)
    self.assertEqual(sorted(os.listdir(logdir)), files)

  def testThePrompt(self):
    result = subprocess.run(
      [
        *(sys.executable, '-m', 'lingvo_gpipe.trainer', '--mode=shell'),
        f'--model={_MODEL}',
      ],
      input='print(sorted(inputs), params.name)\nhelp(shell)\n',
      capture_output=True,
      text=True,
      env=child_process.Environment(),
      check=False,
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn("['dev', 'test', 'train'] tiny", result.stdout)
    self.assertIn('a mini-batch', result.stdout)
    self.assertIn('Gradients; help(shell)', result.stderr)


if __name__ == '__main__':
  absltest.main()
