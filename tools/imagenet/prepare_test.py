"""Tests of prepare."""

import contextlib
import io
import os
import subprocess
import sys

from absl.testing import absltest, flagsaver

from lingvo_gpipe import child_process, user_error
from tools.imagenet import prepare, test_archives


class PrepareTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._data_dir = os.path.join(self.create_tempdir().full_path, 'data')
    self._manual = os.path.join(self._data_dir, 'downloads', 'manual')

  def _Run(self, **flags):
    """What the tool prints."""
    output = io.StringIO()
    with flagsaver.flagsaver(data_dir=self._data_dir, **flags):
      with contextlib.redirect_stdout(output):
        self.assertEqual(prepare.Main(), 0)
    return output.getvalue()

  def _AssertError(self, text, **flags):
    with self.assertRaisesRegex(user_error.UserError, text):
      self._Run(**flags)
    self.assertEqual(os.listdir(self._data_dir), ['downloads'])

  def testPrepares(self):
    test_archives.Make(self._manual)
    output = self._Run(progress_seconds=0.1)
    folder = os.path.join(self._data_dir, 'imagenet2012', '5.1.0')
    self.assertIn('reading ILSVRC2012_img_train.tar: 12 images\n', output)
    self.assertIn(f'{folder} is ready: 17 images in ', output)
    self.assertNotIn('Downloading', output)
    self.assertIn(
      'ImageNet has 1,331,167 images, these archives had 17', output
    )
    self.assertLen(os.listdir(self._manual), 2)  # They stay.

    def _Times():
      paths = [os.path.join(folder, x) for x in sorted(os.listdir(folder))]
      return {path: os.stat(path).st_mtime_ns for path in paths}

    times = _Times()
    self.assertIn(os.path.join(folder, 'dataset_info.json'), times)
    self.assertEqual(self._Run(), f'{folder} is there already; nothing to do\n')
    self.assertEqual(_Times(), times)

  def testArchivesElsewhere(self):
    train, validation = test_archives.Make(self._manual)
    other = self.create_tempdir().full_path
    moved = [os.path.join(other, x) for x in ('a.tar', 'b.tar')]
    os.rename(train, moved[0])
    self._AssertError(
      rf'there is no {train} \(138 GB; --train_tar\): register at image-net.org'
    )
    os.rename(validation, moved[1])
    self._AssertError(
      rf'there is no {train} \(138 GB; --train_tar\) and no {validation} \(6.3 '
      r'GB; --val_tar\): register'
    )
    output = self._Run(train_tar=moved[0], val_tar=moved[1])
    self.assertIn('reading a.tar: 12 images', output)

  def testDamagedArchive(self):
    train, _ = test_archives.Make(self._manual)
    os.truncate(train, os.path.getsize(train) // 2)
    self._AssertError('unexpected end of data')

  def testUnknownClass(self):
    # Reading fails in the middle.
    test_archives.Make(self._manual, classes=('n01440764', 'n99999999'))
    with self.assertRaisesRegex(
      user_error.UserError,
      'ImageNet could not be prepared; nothing is left behind: .*n99999999',
    ):
      self._Run()
    self.assertEmpty(os.listdir(os.path.join(self._data_dir, 'imagenet2012')))

  def testNoRoom(self):
    train, _ = test_archives.Make(self._manual)
    os.truncate(train, 10**13)  # A hole takes no room itself.
    self._AssertError(
      'GB left, the dataset needs 11000.0 GB; make room, or choose another'
    )

  def testLeftovers(self):
    test_archives.Make(self._manual)
    folder = os.path.join(self._data_dir, 'imagenet2012/incomplete.X_5.1.0')
    os.makedirs(folder)
    self.assertStartsWith(
      self._Run(), f'note: {folder} is what a killed preparation left; unless'
    )

  def testProgram(self):
    result = subprocess.run(
      [
        sys.executable,
        '-m',
        'tools.imagenet.prepare',
        f'--data_dir={self._data_dir}',
      ],
      env=child_process.Environment(),
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual(result.returncode, 2)
    self.assertRegex(result.stderr, '^error: there is no .*train.tar .*\n$')
    self.assertEqual(result.stdout, '')


if __name__ == '__main__':
  absltest.main()
