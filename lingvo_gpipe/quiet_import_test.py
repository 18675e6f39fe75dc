"""Tests of quiet_import."""

import subprocess
import sys

from absl.testing import absltest

from lingvo_gpipe import child_process


def _Run(code, **environment):
  return subprocess.run(
    [sys.executable, '-c', code],
    env=child_process.Environment(**environment),
    capture_output=True,
    text=True,
    check=False,
  )


class QuietImportTest(absltest.TestCase):
  def testQuiet(self):
    done = _Run(
      'import sys\n'
      'from lingvo_gpipe import quiet_import\n'
      'quiet_import.ImportTensorFlow(quiet=True)\n'
      'print("tensorflow" in sys.modules)\n'
      'print("heard", file=sys.stderr)\n',
      TF_CPP_MIN_LOG_LEVEL='2',
    )
    self.assertEqual((done.stdout, done.stderr), ('True\n', 'heard\n'))

  def testFailureIsShown(self):
    folder = self.create_tempdir()
    folder.create_file(
      'tensorflow.py',
      content='import os\nos.write(2, b"notice")\nraise ImportError("bad")\n',
    )
    done = _Run(
      f'import sys\nsys.path.insert(0, {folder.full_path!r})\n'
      'from lingvo_gpipe import quiet_import\n'
      'quiet_import.ImportTensorFlow(quiet=True)\n',
      TF_CPP_MIN_LOG_LEVEL='2',
    )
    self.assertEqual(done.returncode, 1)
    self.assertStartsWith(done.stderr, 'notice')
    self.assertIn('ImportError: bad', done.stderr)


if __name__ == '__main__':
  absltest.main()
