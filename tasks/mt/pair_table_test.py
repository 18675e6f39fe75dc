"""Tests of pair_table."""

import json
import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import (
  pair_table,
  record_files,
  test_records,
  test_translation_data,
  translation_data,
)


def _Lists(sequences):
  return [
    sequences.values[start : start + length].tolist()
    for start, length in zip(sequences.starts, sequences.lengths, strict=True)
  ]


class PairTableTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.index = test_translation_data.Write(self.folder)

  def _Data(self, split='train'):
    return translation_data.TranslationData(self.folder, split)

  def _Expected(self, split='train'):
    """{group: records}."""
    return {
      group: list(test_records.Read(self.folder, shards))
      for group, shards in sorted(self.index['files'][split].items())
    }

  def _Shard(self):
    return f'{self.folder}/{self.index["files"]["train"]["de"][0]}'

  @parameterized.parameters(1, 7, 2048)
  def testPairsAreThoseOfTheRecords(self, chunk):
    with mock.patch.object(pair_table, '_CHUNK', chunk):
      pairs = pair_table.Read(self._Data())
    expected = self._Expected()
    records = [x for group in expected.values() for x in group]
    self.assertEqual(_Lists(pairs.source), [x.source for x in records])
    self.assertEqual(_Lists(pairs.target), [x.target for x in records])
    self.assertEqual(
      pairs.groups.tolist(), [0] * 83 + [1] * 83 + [2] * 11 + [3] * 11
    )
    self.assertEqual(pairs.source.values.dtype, np.uint16)

  def testSeveralShardsAndLimit(self):
    records = self._Expected()['de']
    shards = record_files.WriteShards(
      self.folder, 'train', 'de', records, records_per_shard=30
    )
    self.assertLen(shards, 3)
    self.index['files']['train']['de'] = list(shards)
    self.index['counts'] |= shards
    record_files.WriteIndex(self.folder, self.index)
    pairs = pair_table.Read(self._Data())
    self.assertEqual(_Lists(pairs.source)[:83], [x.source for x in records])
    pairs = pair_table.Read(self._Data(), 40)
    self.assertEqual(
      pairs.groups.tolist(), [0] * 40 + [1] * 40 + [2] * 11 + [3] * 11
    )
    self.assertEqual(
      _Lists(pairs.target)[:40], [x.target for x in records[:40]]
    )

  def testTakeAndCut(self):
    pairs = pair_table.Read(self._Data())
    some = pairs.Take(np.array([5, 100])).Cut(3)
    self.assertEqual(
      _Lists(some.source), [_Lists(pairs.source)[i][:3] for i in (5, 100)]
    )
    self.assertEqual(some.groups.tolist(), [0, 1])
    self.assertEqual(some.Longer().max(), 3)

  def testIdsAbove16Bits(self):
    self.assertEqual(pair_table.Dtype(2**16), np.uint16)
    self.assertEqual(pair_table.Dtype(2**16 + 1), np.int32)

  @parameterized.parameters(82, 84)
  def testWrongNumberOfRecords(self, count):
    records = self._Expected()['de']
    with tf.io.TFRecordWriter(self._Shard()) as writer:
      for i in range(count):
        writer.write(record_files.Serialize(records[i % 83]))
    with self.assertRaisesRegex(
      user_error.UserError, 'train-de-00000.*does not have the 83 records'
    ):
      pair_table.Read(self._Data())

  def testDamagedFile(self):
    os.truncate(self._Shard(), os.path.getsize(self._Shard()) - 5)
    with self.assertRaisesRegex(
      user_error.UserError, 'train-de-00000.* is damaged.*copy the whole'
    ):
      pair_table.Read(self._Data())

  @parameterized.parameters(
    (record_files.Record([400, 3], [3]), 'ids from 3 to 400'),
    (record_files.Record([5, 3], []), 'without source or target'),
  )
  def testWrongRecords(self, record, message):
    with tf.io.TFRecordWriter(self._Shard()) as writer:
      for _ in range(83):
        writer.write(record_files.Serialize(record))
    with self.assertRaisesRegex(user_error.UserError, message):
      pair_table.Read(self._Data())

  def testMoreThanTheMemory(self):
    with open(f'{self.folder}/data.json', 'w') as f:
      tokens = {'train': {x: [10**15, 1] for x in self.index['files']['train']}}
      json.dump(self.index | {'tokens': tokens}, f)
    with self.assertRaisesRegex(
      user_error.UserError, 'GiB of memory.*fewer languages'
    ):
      pair_table.Read(self._Data())


if __name__ == '__main__':
  absltest.main()
