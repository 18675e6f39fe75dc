"""Tests of atomic_file."""

import contextlib
import errno
import os
import resource
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import atomic_file


@contextlib.contextmanager
def _FullAt(size):
  """For the body, no file can become larger than so many bytes."""
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


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

  def testAFullDisk(self):
    with atomic_file.Writing(self._path) as f:
      f.write('old')
    with _FullAt(5):
      with self.assertRaisesRegex(OSError, f"too large: '{self._path}'"):
        with atomic_file.Writing(self._path) as f:
          f.write('much that is new')
      with self.assertRaisesRegex(OSError, f"too large: '{self._path}'"):
        atomic_file.Append(self._path, b'new')
    with open(self._path) as f:
      self.assertEqual(f.read(), 'old')
    self.assertEqual(os.listdir(self._folder), ['file'])

  def testAppend(self):
    for content in (b'one\n', b'', b'two\n'):
      atomic_file.Append(self._path, content, sync=True)
    with open(self._path, 'rb') as f:
      self.assertEqual(f.read(), b'one\ntwo\n')

  def testWhatAnotherAddsMeanwhileStays(self):
    def _FillAndAdd(descriptor):
      with open(self._path, 'ab') as f:
        f.write(b'of another')
      raise OSError(errno.ENOSPC, 'full')

    with mock.patch.object(os, 'fsync', _FillAndAdd):
      with self.assertRaisesRegex(OSError, 'full'):
        atomic_file.Append(self._path, b'mine, ', sync=True)
    with open(self._path, 'rb') as f:
      self.assertEqual(f.read(), b'mine, of another')

  def testNoDirectory(self):
    with self.assertRaises(FileNotFoundError):
      with atomic_file.Writing(os.path.join(self._folder, 'no', 'file')):
        self.fail()


if __name__ == '__main__':
  absltest.main()
