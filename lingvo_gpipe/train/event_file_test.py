"""Tests of event_file."""

import os
import resource
import shutil

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.train import event_file


def _Events(path):
  """[(step, {name: value})], as TensorFlow reads them, CRCs checked."""
  events = []
  for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
    event = tf.compat.v1.Event.FromString(record)
    values = {v.tag: tf.make_ndarray(v.tensor) for v in event.summary.value}
    events.append((event.step, values))
  return events


class EventFileTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._file = event_file.EventFile(self._folder, '.v2')

  def _Read(self):
    first, *events = _Events(self._file.path)
    self.assertEqual(first, (0, {}))
    return events

  def testTheRecordsAreThoseOfTensorflow(self):
    values = {f'name_{n}': 1.0 / (n + 1) for n in range(40)}
    self._file.Write(1, values)
    self._file.Write(1 << 40, {'big': 1e300, 'nan': float('nan')})
    (step, read), last = self._Read()
    self.assertEqual(step, 1)
    self.assertEqual(read, {k: np.float32(v) for k, v in values.items()})
    self.assertEqual(last[0], 1 << 40)
    self.assertEqual(last[1]['big'], np.inf)
    self.assertTrue(np.isnan(last[1]['nan']))
    self.assertEqual(last[1]['nan'].dtype, np.float32)

    # Byte by byte what TensorFlow writes of the same events.
    records = list(tf.data.TFRecordDataset(self._file.path).as_numpy_iterator())
    other = os.path.join(self._folder, 'other')
    with tf.io.TFRecordWriter(other) as writer:
      for record in records:
        writer.write(record)
    with open(other, 'rb') as f, open(self._file.path, 'rb') as g:
      self.assertEqual(f.read(), g.read())
    self.assertEqual(
      sum(map(event_file.RecordSize, records)), os.path.getsize(other)
    )

  def testNamesAreItsOwn(self):
    other = event_file.EventFile(self._folder, '.v2')
    self.assertNotEqual(other.path, self._file.path)
    self.assertRegex(
      os.path.basename(other.path), r'^events\.out\.tfevents\.\d+\..*\.v2$'
    )

  def testADiskThatIsFullForAWhile(self):
    self._file.Write(1, {'loss': 1.0})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Room for a part of the next record.
    size = os.path.getsize(self._file.path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
    try:
      for step in (2, 3):
        with self.assertRaisesRegex(OSError, f"large: '{self._file.path}'"):
          self._file.Write(step, {'loss': float(step)})
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    self.assertEqual(os.path.getsize(self._file.path), size)
    self._file.Flush()
    expected = [(n, {'loss': n}) for n in (1, 2, 3)]
    self.assertEqual(self._Read(), expected)
    self._file.Flush()
    self.assertEqual(self._Read(), expected)

  def testADirectoryThatIsGoneForAWhile(self):
    self._file.Write(1, {'loss': 1.0})
    shutil.rmtree(self._folder)
    with self.assertRaises(FileNotFoundError):
      self._file.Write(2, {'loss': 2.0})
    os.mkdir(self._folder)
    self._file.Write(3, {'loss': 3.0})
    self.assertEqual(self._Read(), [(2, {'loss': 2.0}), (3, {'loss': 3.0})])

  def testWhatWaitsIsBounded(self):
    shutil.rmtree(self._folder)
    for step in range(4):
      with self.assertRaises(FileNotFoundError):
        self._file.Write(step, {'x' * 400_000: 1.0})
    os.mkdir(self._folder)
    self._file.Flush()
    self.assertEqual([step for step, unused in self._Read()], [2, 3])


if __name__ == '__main__':
  absltest.main()
