"""Tests of data_writer."""

import os

import tensorflow as tf

from tasks.mt import data_writer, parallel_text, test_records, test_vocabulary

Pair = parallel_text.Pair


class DataWriterTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._vocab = test_vocabulary.Get()
    self._pairs = [
      Pair('de', f'The cat {i}', f'Die Katze {i}') for i in range(40)
    ]

  def _Write(self, into_english, sides):
    writer = data_writer.DataWriter(self._folder, self._vocab, into_english)
    writer.WriteAll({'de': sides}, lambda line: None)
    return writer.index

  def _Texts(self, index, split, group):
    """(tag id, source, target) of all records, decoded."""
    for source, target in test_records.Read(
      self._folder, index['files'][split][group]
    ):
      self.assertEqual((source[-1], target[-1]), (3, 3))
      yield (
        source[0],
        self._vocab.Decode(source[1:-1]),
        self._vocab.Decode(target[:-1]),
      )

  def testBothDirections(self):
    sides = {'train': self._pairs[:30], 'dev': self._pairs[30:], 'test': []}
    index = self._Write((False, True), sides)
    train = list(self._Texts(index, 'train', 'de'))
    forward = [(5, x.source, x.target) for x in self._pairs]
    self.assertCountEqual(train, forward[:30])
    self.assertNotEqual(train, forward[:30])
    self.assertEqual(
      list(self._Texts(index, 'train', 'de-en')),
      [(4, target, source) for _, source, target in train],
    )
    # As in the raw text beside, line by line.
    self.assertEqual(list(self._Texts(index, 'dev', 'de')), forward[30:])
    self.assertEqual(
      list(self._Texts(index, 'dev', 'de-en')),
      [(4, x.target, x.source) for x in self._pairs[30:]],
    )
    for group, columns in (('de', (1, 2)), ('de-en', (2, 1))):
      path = os.path.join(self._folder, index['text']['dev'][group])
      with open(path, encoding='utf-8') as f:
        self.assertEqual(
          [tuple(x.rstrip('\n').split('\t')) for x in f],
          [tuple(x[i] for i in columns) for x in forward[30:]],
        )

  def testIndex(self):
    index = self._Write((True,), {'train': self._pairs, 'dev': [], 'test': []})
    shard = 'train-de-en-00000-of-00001.tfrecord'
    self.assertEqual(
      index['files'], {'train': {'de-en': [shard]}, 'dev': {}, 'test': {}}
    )
    self.assertEqual(index['counts'], {shard: 40})
    self.assertEqual(index['text'], {'dev': {}, 'test': {}})
    records = list(test_records.Read(self._folder, [shard]))
    self.assertEqual(
      index['tokens']['train'],
      {'de-en': [sum(len(x[i]) for x in records) for i in (0, 1)]},
    )
    self.assertEqual(os.listdir(self._folder), [shard])


if __name__ == '__main__':
  tf.test.main()
