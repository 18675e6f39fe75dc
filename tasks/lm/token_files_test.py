"""Tests of token_files."""

import os
import sysconfig
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.lm import token_files


class TokenFilesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir()

  def _Write(self, name, contents):
    path = os.path.join(self.folder.full_path, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(contents, bytes):
      with open(path, 'wb') as f:
        f.write(contents)
    else:
      np.save(path, contents)
    return path

  def _Load(self, split, vocab_size=257, path=None):
    return token_files.Load(path or self.folder.full_path, split, vocab_size)

  def testFoldersOfParts(self):
    self._Write('train/b.txt', b'xyz')
    self._Write('train/a.txt', 'ä'.encode())
    self._Write('train/.hidden', b'h')
    self._Write('dev/a.txt', b'dev')
    self._Write('LICENSE', b'l')
    tokens = self._Load('train')
    self.assertEqual(tokens.tolist(), [256, 0xC3, 0xA4, 256, *b'xyz'])
    self.assertEqual(tokens.dtype, np.uint16)
    self.assertEqual(self._Load('dev').tolist(), [256, *b'dev'])
    with self.assertRaisesRegex(
      user_error.UserError, 'has 0 tokens of test data in 4 files'
    ):
      self._Load('test')

  def testFilesByHash(self):
    for i in range(200):
      self._Write(f'{i % 3}/{i:03}.npy', np.array([i], np.int64))
    parts = {
      split: self._Load(split, 200).tolist() for split in token_files.SPLITS
    }
    self.assertCountEqual(sum(parts.values(), []), range(200))
    self.assertBetween(len(parts['test']), 3, 25)
    self.assertBetween(len(parts['dev']), 3, 25)
    # A file stays where it is, whatever others come.
    self._Write('new.npy', np.array([5], np.int64))
    for split, tokens in parts.items():
      self.assertContainsSubset(tokens, self._Load(split, 200).tolist())
    # And on every machine.
    self.assertEqual(
      [token_files.Part(f'{i}.txt') for i in (0, 10, 25)],
      list(token_files.SPLITS),
    )

  def testASingleFileIsCut(self):
    path = self._Write('ids.npy', np.arange(1000, dtype=np.uint32))
    parts = [
      self._Load(split, 100_000, path).tolist() for split in token_files.SPLITS
    ]
    self.assertEqual([len(p) for p in parts], [900, 50, 50])
    self.assertEqual(sum(parts, []), list(range(1000)))
    self.assertEqual(self._Load('dev', 100_000, path).dtype, np.int32)

  def testPythonSources(self):
    paths = token_files.Files(token_files.PYTHON_SOURCES)
    self.assertGreater(len(paths), 300)
    self.assertIn('argparse.py', paths)
    self.assertIn('json/decoder.py', paths)
    for name in paths:
      self.assertEndsWith(name, '.py')
      self.assertNoCommonElements(
        ('test', 'site-packages', 'encodings'), name.split('/')[:-1]
      )
    sizes = {
      split: len(token_files.Load(token_files.PYTHON_SOURCES, split, 257))
      for split in token_files.SPLITS
    }
    total = sum(os.path.getsize(path) + 1 for path in paths.values())
    self.assertEqual(sum(sizes.values()), total)
    self.assertBetween(sizes['test'] / total, 0.01, 0.15)
    self.assertBetween(sizes['dev'] / total, 0.01, 0.15)

  def testNoPythonSources(self):
    empty = self.folder.full_path
    with mock.patch.object(
      sysconfig, 'get_paths', return_value={'stdlib': empty}
    ):
      with self.assertRaisesRegex(
        user_error.UserError, '^<python>: no data, .*set --data_dir'
      ):
        token_files.Files(token_files.PYTHON_SOURCES)

  @parameterized.parameters(
    (np.array([3, 300]), 'has ids from 3 to 300, .* from 0 to 256; change voc'),
    (np.array([-1, 3]), 'has ids from -1 to 3'),
    (np.zeros([2, 2], int), r'must be a vector of integers, .*\[2, 2\]'),
    (np.zeros([2]), 'must be a vector of integers, not float64'),
    (np.array([None]), "can't be memory-mapped: Python objects"),
  )
  def testWrongIds(self, ids, message):
    path = self._Write('train/a.npy', ids)
    with self.assertRaisesRegex(user_error.UserError, f'^{path}.*{message}'):
      self._Load('train')

  def testWrongFiles(self):
    path = self._Write('train/a.bin', b'a\0b')
    with self.assertRaisesRegex(
      user_error.UserError, f'^{path}: the data has bytes that are 0'
    ):
      self._Load('train')
    path = self._Write('train/a.bin', b'')
    with self.assertRaisesRegex(user_error.UserError, 'has 1 tokens of train'):
      self._Load('train')
    self._Write('train/a.npy', b'no array')
    with self.assertRaisesRegex(user_error.UserError, 'a.npy: '):
      self._Load('train')

  def testNoData(self):
    with self.assertRaisesRegex(
      user_error.UserError, "^no data .*set --data_dir to .* or to '<python>'"
    ):
      token_files.Load('', 'train', 257)
    with self.assertRaisesRegex(
      user_error.UserError, '^--data_dir=/not/here: there is no such data'
    ):
      token_files.Load('/not/here', 'train', 257)


if __name__ == '__main__':
  absltest.main()
