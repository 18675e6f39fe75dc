"""Tests of shared_directory, with workers of this machine."""

import os
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import cluster
from lingvo_gpipe.jobs import shared_directory
from lingvo_gpipe.workers import local_workers


class SharedDirectoryTest(absltest.TestCase):
  def testWorkersOfThisMachine(self):
    directory = self.create_tempdir().full_path
    with local_workers.LocalWorkers(2) as workers:
      devices = cluster.Connect(workers.addresses).devices
      self.assertEmpty(shared_directory.NotSeenBy(directory, devices))
      self.assertEmpty(os.listdir(directory))
      # A file that only this process sees: in memory, by a name of its own.
      memory = os.memfd_create('x')
      self.addCleanup(os.close, memory)
      file = mock.MagicMock()
      file.__enter__.return_value.name = f'/proc/self/fd/{memory}'
      with mock.patch('tempfile.NamedTemporaryFile', return_value=file):
        self.assertEqual(
          shared_directory.NotSeenBy(directory, devices), list(devices)
        )
      # Where nothing can be written, what is there counts.
      with mock.patch('tempfile.NamedTemporaryFile', side_effect=OSError):
        self.assertEmpty(shared_directory.NotSeenBy(directory, devices))
        open(os.path.join(directory, 'a'), 'w').close()
        self.assertEmpty(shared_directory.NotSeenBy(directory, devices))


if __name__ == '__main__':
  absltest.main()
