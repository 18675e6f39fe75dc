"""Tests of record_files."""

import json
import os

import tensorflow as tf

from lingvo_gpipe import user_error
from tasks.mt import record_files, test_records

Record = record_files.Record


class RecordFilesTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path

  def testGroups(self):
    self.assertEqual(record_files.Group('de', into_english=False), 'de')
    self.assertEqual(record_files.Group('de', into_english=True), 'de-en')

  def testShards(self):
    records = [Record([5, i, 3], [i, i + 1, 3]) for i in range(10)]
    counts = record_files.WriteShards(
      self._folder, 'train', 'de', records, records_per_shard=4
    )
    self.assertEqual(
      counts,
      {
        'train-de-00000-of-00003.tfrecord': 3,
        'train-de-00001-of-00003.tfrecord': 3,
        'train-de-00002-of-00003.tfrecord': 4,
      },
    )
    self.assertEqual(list(test_records.Read(self._folder, counts)), records)
    counts = record_files.WriteShards(self._folder, 'dev', 'de', records)
    self.assertEqual(counts, {'dev-de-00000-of-00001.tfrecord': 10})
    self.assertEqual(list(test_records.Read(self._folder, counts)), records)

  def testLargeIds(self):
    record = Record([0, 2**31, 63_999], [3])
    counts = record_files.WriteShards(self._folder, 'dev', 'de', [record])
    self.assertEqual(list(test_records.Read(self._folder, counts)), [record])

  def testTextAndIndex(self):
    rows = [('yes', 'ja\u2028'), ('é', 'ü')]
    name = record_files.WriteText(self._folder, 'dev', 'de-en', rows)
    self.assertEqual(name, 'dev.de-en.tsv')
    with open(os.path.join(self._folder, name), 'rb') as f:
      self.assertEqual(f.read().decode(), 'yes\tja\u2028\né\tü\n')
    record_files.WriteIndex(self._folder, {'languages': {'de': 'é'}})
    with open(os.path.join(self._folder, 'data.json'), encoding='utf-8') as f:
      self.assertEqual(json.load(f), {'languages': {'de': 'é'}})

  def testNoSuchFolder(self):
    with self.assertRaisesRegex(user_error.UserError, '/none: '):
      record_files.WriteShards('/none', 'dev', 'de', [Record([3], [3])])


if __name__ == '__main__':
  tf.test.main()
