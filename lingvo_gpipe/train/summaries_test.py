"""Tests for summaries."""

from __future__ import annotations

import glob
import json
import os
import threading
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.train import summaries


def _Events(directory):
  """[(step, name, value)] of all event files of a directory, sorted."""
  events = []
  for path in glob.glob(f'{directory}/*tfevents*'):
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
      event = tf.compat.v1.Event.FromString(record)
      for value in event.summary.value:
        number = float(tf.make_ndarray(value.tensor))
        events.append((event.step, value.tag, number))
  return sorted(events)


class SummaryWriterTest(absltest.TestCase):
  def testWritesScalarsByStep(self):
    directory = os.path.join(self.create_tempdir().full_path, 'train')
    writer = summaries.SummaryWriter(directory)
    writer.Scalars(1, {'loss': 2.0, 'learner/grad_norm': tf.constant(3.0)})
    writer.Scalars(np.int64(2), {'loss': tf.constant(0.5, tf.float64)})
    expected = [(1, 'learner/grad_norm', 3.0), (1, 'loss', 2.0)]
    self.assertEqual(_Events(directory), [*expected, (2, 'loss', 0.5)])
    writer.Scalars(3, {'skipped': tf.constant(True)})
    self.assertEqual(_Events(directory)[-1], (3, 'skipped', 1.0))

  def testResumeContinuesWithoutDuplicates(self):
    directory = self.create_tempdir().full_path
    first = summaries.SummaryWriter(directory)
    for step in range(1, 8):
      first.Scalars(step, {'loss': step})
    second = summaries.SummaryWriter(directory, start_step=5)
    for step in range(6, 10):
      second.Scalars(step, {'loss': 10 * step})
    self.assertEqual(
      _Events(directory),
      [(s, 'loss', s if s <= 5 else 10 * s) for s in range(1, 10)],
    )

  def testIncompleteRecordOfAKilledProcessIsRemoved(self):
    directory = self.create_tempdir().full_path
    first = summaries.SummaryWriter(directory)
    for step in (1, 2, 3):
      first.Scalars(step, {'loss': step})
    (path,) = glob.glob(f'{directory}/*tfevents*')
    os.truncate(path, os.path.getsize(path) - 5)
    with self.assertRaises(tf.errors.DataLossError):
      _Events(directory)
    summaries.SummaryWriter(directory, start_step=3)
    self.assertEqual(_Events(directory), [(1, 'loss', 1.0), (2, 'loss', 2.0)])

  def testResumeLeavesWholeFilesAlone(self):
    directory = self.create_tempdir().full_path
    first = summaries.SummaryWriter(directory)
    first.Scalars(1, {'loss': 1})
    (path,) = glob.glob(f'{directory}/*tfevents*')
    inode = os.stat(path).st_ino
    summaries.SummaryWriter(directory, start_step=1)
    self.assertEqual(os.stat(path).st_ino, inode)

  def testFilesOfOthersStayAsTheyAre(self):
    directory = self.create_tempdir().full_path
    for suffix, value in (('.v2', 1.0), ('.evaler', 2.0)):
      writer = summaries.SummaryWriter(directory, suffix=suffix)
      for step in (1, 2, 3):
        writer.Scalars(step, {'loss': value})
    summaries.SummaryWriter(directory, start_step=1)
    summaries.SummaryWriter(directory, start_step=None, suffix='.evaler')
    self.assertEqual(
      _Events(directory),
      [(1, 'loss', 1.0), *[(s, 'loss', 2.0) for s in (1, 2, 3)]],
    )


class JsonTest(absltest.TestCase):
  def testWritesNumbersOfAllKinds(self):
    path = os.path.join(self.create_tempdir().full_path, 'result.json')
    summaries.WriteJson(
      path,
      {
        'accuracy': np.float32(0.5),
        'count': tf.constant(7, tf.int64),
        'splits': (1, 2),
        'nested': {'array': np.arange(3), 'nan': float('nan')},
        'infinite': tf.constant(np.inf),
        'name': 'digits',
        'none': None,
      },
    )
    with open(path) as f:
      self.assertEqual(
        json.load(f),
        {
          'accuracy': 0.5,
          'count': 7,
          'splits': [1, 2],
          'nested': {'array': [0, 1, 2], 'nan': None},
          'infinite': None,
          'name': 'digits',
          'none': None,
        },
      )
    self.assertEqual(os.stat(path).st_mode & 0o600, 0o600)

  def testAFailedWriteLeavesTheOldFile(self):
    directory = self.create_tempdir().full_path
    path = os.path.join(directory, 'result.json')
    summaries.WriteJson(path, {'a': 1})
    with self.assertRaises(TypeError):
      summaries.WriteJson(path, {'a': object()})
    with mock.patch.object(os, 'fsync', side_effect=OSError('disk is full')):
      with self.assertRaisesRegex(OSError, 'disk is full'):
        summaries.WriteJson(path, {'a': 2})
    with open(path) as f:
      self.assertEqual(json.load(f), {'a': 1})
    self.assertEqual(os.listdir(directory), ['result.json'])

  def testAppendAddsLinesOfSeveralThreadsWhole(self):
    path = os.path.join(self.create_tempdir().full_path, 'scores.jsonl')

    def _Write(start):
      for step in range(start, start + 20):
        summaries.AppendJson(path, {'step': step, 'text': 'x' * 1000})

    threads = [threading.Thread(target=_Write, args=(s,)) for s in (0, 20, 40)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    with open(path) as f:
      steps = [json.loads(line)['step'] for line in f]
    self.assertCountEqual(steps, range(60))


if __name__ == '__main__':
  absltest.main()
