"""Tests of atomic_file."""

import os

from absl.testing import absltest

from lingvo_gpipe import atomic_file


class AtomicFileTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._path = os.path.join(self._folder, 'file')

  def testAppearsAtTheEnd(self):
    with atomic_file.Writing(self._path) as f:
      f.write('größer\n')
      self.assertFalse(os.path.exists(self._path))
    with open(self._path, 'rb') as f:
      self.assertEqual(f.read(), 'größer\n'.encode())
    other = os.path.join(self._folder, 'other')
    with open(other, 'w'):
      pass
    self.assertEqual(os.stat(self._path).st_mode, os.stat(other).st_mode)

  def testBytes(self):
    with atomic_file.Writing(self._path, binary=True) as f:
      f.write(b'\x00\xff\n')
    with open(self._path, 'rb') as f:
      self.assertEqual(f.read(), b'\x00\xff\n')

  def testAFailureLeavesWhatWasThere(self):
    with atomic_file.Writing(self._path) as f:
      f.write('old')
    with self.assertRaises(KeyError):
      with atomic_file.Writing(self._path) as f:
        f.write('new')
        raise KeyError
    with open(self._path) as f:
      self.assertEqual(f.read(), 'old')
    self.assertEqual(os.listdir(self._folder), ['file'])

  def testNoDirectory(self):
    with self.assertRaises(FileNotFoundError):
      with atomic_file.Writing(os.path.join(self._folder, 'no', 'file')):
        self.fail()


if __name__ == '__main__':
  absltest.main()
