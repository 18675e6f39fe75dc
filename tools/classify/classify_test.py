"""Tests of the command."""

import contextlib
import io
import json
import os
import subprocess
import sys

from absl.testing import absltest, flagsaver

from lingvo_gpipe import child_process
from tools.classify import __main__ as classify
from tools.classify import test_model


def _Run(folder, *args, names=''):
  environment = child_process.Environment()
  return subprocess.run(
    [sys.executable, *args],
    cwd=folder,
    env=environment,
    input=names,
    capture_output=True,
    text=True,
    check=False,
  )


def _Main(names, **flags):
  """(exit status, stdout, stderr) of the command in this process."""
  streams = [io.TextIOWrapper(io.BytesIO(), 'utf-8') for _ in range(2)]
  with (
    flagsaver.flagsaver(**flags),
    contextlib.redirect_stdout(streams[0]),
    contextlib.redirect_stderr(streams[1]),
  ):
    status = classify.Main(['classify', *names])
  for stream in streams:
    stream.seek(0)
  return status, *(stream.read() for stream in streams)


class ClassifyTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    for name, value in (('dark', 0), ('light', 255), ('grey one', 51)):
      with open(os.path.join(self._folder, f'{name}.png'), 'wb') as f:
        f.write(test_model.Picture(value))

  def testClassifies(self):
    test_model.Write(os.path.join(self._folder, 'model'), ['night', 'day'])
    with open(os.path.join(self._folder, 'broken.png'), 'wb') as f:
      f.write(b'no picture')
    done = _Run(
      self._folder,
      '-m',
      'tools.classify',
      '--saved_model=model',
      '--batch_size=2',
      'light.png',
      'broken.png',
      '-',
      'none.png',
      names='dark.png\n\ngrey one.png\n',
    )
    self.assertEqual(
      done.stdout.splitlines(),
      [
        'light.png: day 1.0000, night 0.0000',
        'dark.png: night 1.0000, day 0.0000',
        'grey one.png: night 0.8000, day 0.2000',
      ],
    )
    self.assertRegex(
      done.stderr,
      '^broken.png: .*image file format.*\n'
      'none.png: No such file or directory\n'
      '2 of 5 pictures failed\n$',
    )
    self.assertEqual(done.returncode, 1)

  def testJson(self):
    model = test_model.Write(os.path.join(self._folder, 'model'))
    dark = os.path.join(self._folder, 'dark.png')
    status, stdout, stderr = _Main([dark], saved_model=model, json=True, top=1)
    self.assertEqual((status, stderr), (0, ''))
    self.assertEqual(
      json.loads(stdout),
      {
        'file': dark,
        'classes': [{'class': 0, 'name': '0', 'probability': 1.0}],
      },
    )

  def _Mistake(self, *args):
    """(exit status, stderr) of a wrong command; TensorFlow is not needed."""
    code = (
      'import runpy, sys; sys.modules["tensorflow"] = None; '
      f'sys.argv = {["classify", *args]!r}; '
      'runpy.run_module("tools.classify", run_name="__main__", alter_sys=True)'
    )
    done = _Run(self._folder, '-c', code)
    return done

  def testMistakes(self):
    for args, problem in (
      (['x.png'], '--saved_model is missing'),
      (['--saved_model=model'], 'there are no pictures'),
      (['--saved_model=model', '--top=0', 'x.png'], '--top=0'),
    ):
      done = self._Mistake(*args)
      self.assertEqual(done.returncode, 2, done.stderr)
      self.assertStartsWith(done.stderr, 'error: ')
      self.assertIn(problem, done.stderr)
      self.assertLen(done.stderr.splitlines(), 1)

  def testHelp(self):
    done = self._Mistake('--help')
    self.assertEqual(done.returncode, 0, done.stderr)
    for flag in ('--saved_model', '--top', '--batch_size', '--[no]json'):
      self.assertIn(f'{flag}:', done.stdout)

  def testNoSuchModel(self):
    status, stdout, stderr = _Main(['dark.png'], saved_model='none')
    self.assertEqual((status, stdout), (2, ''))
    self.assertRegex(stderr, '^error: --saved_model=none: .*not exist.*\n$')


if __name__ == '__main__':
  absltest.main()
