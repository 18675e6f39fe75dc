"""Tests of tfds_data."""

import contextlib
import io
import os
import subprocess
import sys
from unittest import mock

from absl import logging
from absl.testing import absltest, parameterized

from lingvo_gpipe import child_process, user_error
from tasks.image import tfds_data


class TfdsDataTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path

  def _Prepare(self, *folders):
    for folder in folders:
      path = os.path.join(self._root, folder)
      os.makedirs(path)
      open(os.path.join(path, 'dataset_info.json'), 'w').close()

  def _AssertFound(self, dataset, folder):
    found = tfds_data.FindPrepared(self._root, dataset)
    self.assertEqual(found, folder and os.path.join(self._root, folder))

  def testDataDir(self):
    with mock.patch.dict(os.environ, {'HOME': '/home/me'}):
      os.environ.pop('TFDS_DATA_DIR', None)
      default = '/home/me/tensorflow_datasets'
      self.assertEqual(tfds_data.DataDir(''), default)
      self.assertEqual(tfds_data.DataDir('~/data'), '/home/me/data')
      os.environ['TFDS_DATA_DIR'] = '/data'
      self.assertEqual(tfds_data.DataDir(''), '/data')

  def testFindsTheNewestVersion(self):
    self._AssertFound('cats', None)
    self._Prepare('cats/9.0.0', 'cats/10.0.0', 'cats/incomplete.X_11.0.0')
    self._AssertFound('cats', 'cats/10.0.0')
    self._AssertFound('cats:9.0.0', 'cats/9.0.0')
    self._AssertFound('cats:8.0.0', None)
    self._AssertFound('dogs', None)

  def testConfigs(self):
    self._Prepare('cats/small/1.0.0')
    self._AssertFound('cats', 'cats/small/1.0.0')
    self._Prepare('cats/large/1.0.0')
    self._AssertFound('cats/large', 'cats/large/1.0.0')
    self._AssertFound('cats/small:1.0.0', 'cats/small/1.0.0')
    with self.assertRaisesRegex(
      user_error.UserError, 'dataset as cats/large or cats/small'
    ):
      tfds_data.FindPrepared(self._root, 'cats')

  def _AssertMissing(self, dataset, text):
    with self.assertRaisesRegex(user_error.UserError, text) as caught:
      tfds_data.Builder(self._root, dataset, download=False)
    self.assertNotIn('\n', str(caught.exception))
    self.assertEmpty(os.listdir(self._root))

  def testMissingImageNet(self):
    self._AssertMissing(
      'imagenet2012',
      rf'imagenet2012: no prepared data in {self._root}. Put ILSVRC2012_img_'
      r'train.tar \(138 GB\) and ILSVRC2012_img_val.tar \(6.3 GB\) from '
      rf'image-net.org into {self._root}/downloads/manual and run "python -m '
      rf'tools.imagenet.prepare --data_dir={self._root}", or try --model=image'
      r'.digits.AmoebaNetDigits, which needs no download',
    )

  def testMissingDatasetThatTfdsDownloads(self):
    self._AssertMissing(
      'cifar10',
      f'cifar10: no prepared data in {self._root}. Say where it is by '
      r'--data_dir .*, let TFDS download it by --download .*, or try --model=',
    )

  def testMissingDatasetThatTfdsCannotDownload(self):
    self._AssertMissing(
      'resisc45',
      r'resisc45: no prepared data in .*TFDS cannot download it by itself: .*'
      rf'Then train once with --download .*{self._root}/downloads/manual, or',
    )

  def testUnknownDataset(self):
    self._AssertMissing(
      'imagenet2021',
      r'imagenet2021 \(input.source.dataset\): .* has no prepared data of this '
      r"name, and TFDS knows no such dataset; did you mean 'imagenet2012",
    )
    self._AssertMissing('cifar10:1.0.0', r'input.source.dataset=cifar10:1.0.0:')

  def testDownloadOnlyWhereItIsAskedFor(self):
    tfds = tfds_data.Import()
    with mock.patch.object(
      tfds.core.DatasetBuilder,
      'download_and_prepare',
      side_effect=ConnectionError('no route'),
    ) as download:
      self._AssertMissing('cifar10', 'no prepared data')
      download.assert_not_called()
      with self.assertRaisesRegex(
        user_error.UserError, 'cifar10: TFDS could not download .*: no route'
      ):
        tfds_data.Builder(self._root, 'cifar10', download=True)
      download.assert_called_once()

  def testCheckFiles(self):
    paths = [os.path.join(self._root, f'x-{i}') for i in range(4)]
    for path in paths:
      open(path, 'w').close()
    tfds_data.CheckFiles('cats', paths)
    os.remove(paths[2])
    os.remove(paths[3])
    with self.assertRaisesRegex(
      user_error.UserError,
      f'cats: 2 of 4 files are missing, the first is {paths[2]}: copy .* or '
      f'remove {self._root} and prepare',
    ):
      tfds_data.CheckFiles('cats', paths)

  def testQuiet(self):
    before = logging.get_verbosity()
    with contextlib.redirect_stdout(io.StringIO()) as output:
      with tfds_data.Quiet():
        self.assertEqual(logging.get_verbosity(), logging.ERROR)
        print('Downloading and preparing')
    self.assertEqual(logging.get_verbosity(), before)
    self.assertEqual(output.getvalue(), '')

  def testTfdsIsImportedOnlyWhenNeeded(self):
    code = (
      'import sys; from tasks.image import image_input, tfds_source; '
      "assert 'tensorflow_datasets' not in sys.modules; "
      's = tfds_source.TfdsSource.Params().Set(dataset="cifar10"); '
      'p = image_input.ImageInput.Params().Set(source=s); '
      'p.Instantiate().BatchSpec(); '
      "assert 'tensorflow_datasets' not in sys.modules"
    )
    subprocess.run(
      [sys.executable, '-c', code],
      check=True,
      env=child_process.Environment(),
    )


if __name__ == '__main__':
  absltest.main()
