"""Tests of translation_input."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.mt import (
  test_records,
  test_translation_data,
  translation_input,
)

_LENGTHS = [16, 32, 64]
_MODES = {
  'buckets': {'training': True},
  'packed': {'training': True, 'packing': True},
  'evaluation': {'training': False},
}


def _Batches(generator, position=0, count=None):
  batches = generator.Dataset(position).as_numpy_iterator()
  return list(itertools.islice(batches, count))


class TranslationInputTest(parameterized.TestCase, tf.test.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.index = test_translation_data.Write(self.folder)

  def _Input(self, **kwargs):
    kwargs = {
      'data_dir': self.folder,
      'bucket_lengths': _LENGTHS,
      'batch_tokens': 300,
      'batch_multiple': 2,
      **kwargs,
    }
    params = translation_input.TranslationInput.Params().Set(**kwargs)
    return params.Instantiate()

  def _Records(self, split):
    """Pairs of lists, group by group."""
    groups = sorted(self.index['files'][split].items())
    return [
      (group, record)
      for group, shards in groups
      for record in test_records.Read(self.folder, shards)
    ]

  @parameterized.parameters(*_MODES)
  def testResumesExactly(self, mode):
    whole = _Batches(self._Input(**_MODES[mode]), count=12)
    for position in (1, 7, len(whole) - 1):
      # A new process, as it were.
      rest = _Batches(
        self._Input(**_MODES[mode]), position, len(whole) - position
      )
      self.assertLen(rest, len(whole) - position)
      for batch, expected in zip(rest, whole[position:], strict=True):
        self.assertEqual(set(batch), set(expected))
        for name, value in batch.items():
          self.assertAllEqual(value, expected[name])

  @parameterized.product(mode=list(_MODES), packing=[False, True])
  def testMiniBatchesAreAsSpecified(self, mode, packing):
    generator = self._Input(**{'packing': packing, **_MODES[mode]})
    specs = generator.BatchSpecs()
    self.assertEqual(specs[-1], generator.BatchSpec())
    self.assertLen(
      specs, 1 if packing and mode != 'evaluation' or mode == 'packed' else 3
    )
    known = {tuple(x.inputs.shape): x for x in specs}
    for rows, length in known:
      self.assertEqual(rows % 2, 0)
      self.assertLessEqual(rows * length, 300)
    found = set()
    for batch in _Batches(generator, count=40):
      shape = batch['inputs'].shape
      found.add(shape)
      self.assertEqual(
        {k: (tuple(v.shape), v.dtype) for k, v in known[shape].items()},
        {k: (v.shape, tf.as_dtype(v.dtype)) for k, v in batch.items()},
      )
    self.assertEqual(found, set(known))

  def testExamplesOfTraining(self):
    """All that comes is a record, whole, and all that fits comes."""
    records = {
      (tuple(x.source), tuple(x.target)) for _, x in self._Records('train')
    }
    fitting = {x for x in records if max(map(len, x)) <= 30}
    for packing in (False, True):
      generator = self._Input(
        training=True, packing=packing, max_length=30, temperature=1.0
      )
      seen = set()
      for batch in _Batches(generator, count=200):
        seen |= set(_Pairs(batch))
      self.assertEqual(seen, fitting)
      self.assertEqual(
        sum(generator.num_dropped.values()),
        sum(max(map(len, x)) > 30 for _, x in self._Records('train')),
      )
      self.assertEqual(generator.num_examples, 2 * (83 + 11))
    self.assertLess(len(fitting), len(records))

  def testSharesFollowTemperature(self):
    generator = self._Input(
      training=True, directions='en-xx', temperature=5.0, max_length=40
    )
    kept = {'de': 83, 'pt_BR': 11}
    for group, count in generator.num_dropped.items():
      kept[group] -= count
    tags = np.concatenate(
      [x['inputs'][:, 0] for x in _Batches(generator, count=600)]
    )
    share = np.mean(tags == generator.vocab.TagId('pt_BR'))
    weights = [count ** (1 / 5) for count in kept.values()]
    self.assertAllClose(share, weights[1] / sum(weights), atol=3e-3)

  @parameterized.parameters(0, 5)
  def testEvaluationHasEachExampleOnce(self, limit):
    length = 24
    generator = self._Input(
      split='test',
      bucket_lengths=[12, length],
      max_examples_per_group=limit,
    )
    records = self._Records('test')
    if limit:
      records = [
        x
        for _, own in itertools.groupby(records, lambda x: x[0])
        for x in list(own)[:limit]
      ]
    batches = _Batches(generator)
    self.assertLen(batches, generator.num_batches)
    self.assertEqual(generator.num_examples, len(records))
    found = []
    for batch in batches:
      for i in np.flatnonzero(batch['weights']):
        example = batch['example_ids'][i]
        group, record = records[example]
        found.append(example)
        source, target = record.source[:length], record.target[:length]
        source[-1] = 3
        row = {k: batch[k][i] for k in ('inputs', 'labels', 'target_ids')}
        self.assertEqual(_Unpadded(row['inputs']), source)
        self.assertEqual(_Unpadded(row['labels']), target)
        self.assertEqual(_Unpadded(row['target_ids']), [2, *target[:-1]])
        self.assertEqual(generator.groups[batch['group_ids'][i]], group)
        sentence = generator.Sentence(example)
        self.assertEqual(sentence.group, group)
        self.assertEqual(
          generator.vocab.Encode(sentence.source), record.source[1:-1]
        )
        self.assertEqual(
          generator.vocab.Encode(sentence.reference), record.target[:-1]
        )
    self.assertEqual(sorted(found), list(range(len(records))))
    self.assertTrue(any(len(x.source) > length for _, x in records))

  def testBatchSize(self):
    generator = self._Input(batch_tokens=0, batch_size=4, training=True)
    self.assertEqual(
      [tuple(x.inputs.shape) for x in generator.BatchSpecs()],
      [(4, 16), (4, 32), (4, 64)],
    )

  def testVocabSize(self):
    self.assertEqual(self._Input(vocab_size=312).vocab_size, 312)


def _Unpadded(ids):
  return ids[ids != 0].tolist()


def _Pairs(batch):
  """(source, target) of all sentences, as tuples of ids."""
  for i in range(len(batch['inputs'])):
    sides = []
    for name, side in (('inputs', 'source'), ('labels', 'target')):
      ids, padded = batch[name][i], batch[f'{side}_paddings'][i] == 1
      segments = batch.get(f'{side}_segment_ids', 1 - padded[np.newaxis])
      segments = segments[i] if f'{side}_segment_ids' in batch else segments[0]
      assert (segments == 0).tolist() == padded.tolist()
      sides.append(
        [
          tuple(ids[segments == k].tolist())
          for k in range(1, segments.max() + 1)
        ]
      )
    yield from zip(*sides, strict=True)


if __name__ == '__main__':
  tf.test.main()
