"""The input of multilingual translation, from what tools/mt/prepare writes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from lingvo_gpipe import (
  base_input,
  cluster,
  hyperparams,
  nested_map,
  user_error,
)
from tasks.mt import (
  batch_plan,
  batching,
  language_sampling,
  pair_table,
  preparation_options,
  record_files,
  row_table,
  sentences,
  split,
  translation_data,
  vocabulary,
)

NestedMap = nested_map.NestedMap


class _Rows(NamedTuple):
  """What is in memory.

  Attributes:
    table: the rows.
    groups: int32 [rows].
    plan: mini-batches of them.
    dropped: int [groups], pairs that are in none.
  """

  table: row_table.RowTable
  groups: tf.Tensor
  plan: batch_plan.BatchPlan
  dropped: np.ndarray


class TranslationInput(base_input.BaseInput):
  """Mini-batches of pairs of sentences, as transformer_cells takes them.

    inputs           int32 [N, L], tag of the language to translate into,
                     pieces, eos, 0 ...
    source_paddings  float32 [N, L], 1 at padding
    target_ids       int32 [N, L], bos, pieces, 0 ...
    labels           int32 [N, L], pieces, eos, 0 ...
    target_paddings  float32 [N, L], 1 at padding
    weights          float32 [N], 0 for rows that only fill up

  With `packing` also source_positions, source_segment_ids, target_positions and
  target_segment_ids, int32 [N, L]: positions start anew in each sentence,
  segments count the sentences of a row from 1, padding has 0. In training a row
  then holds several sentences of one group. Which, is settled once; they come
  together again, in another row of another mini-batch.

  In evaluation also example_ids, int64 [N], see Sentence, and group_ids, int32
  [N], places in `groups`; a row is one sentence, also with `packing`.

  Mini-batches come in a shape [N, L] for each bucket. A sentence is in the
  smallest one that has room for both sides; one that is too long for all is
  left out in training (num_dropped), and cut in evaluation.

  A group is a direction: `de` is en->de, `de-en` is de->en. In training their
  shares are those of `temperature`, see language_sampling; within a group and
  a bucket, examples come in one permutation after another. In evaluation each
  example comes once, bucket by bucket.

  All of the split is in memory, see pair_table. What a position has follows
  from seed and position alone, so restarts cost no more than starts.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'data_dir', '', 'The folder that tools/mt/prepare wrote (--data_dir).'
    )
    p.Define('split', 'train', "'train', 'dev' or 'test'.")
    p.Define('languages', [], 'Those beside English to take; []: all.')
    p.Define(
      'directions',
      'both',
      "Of those that the data has: 'en-xx' from English, 'xx-en' into English, "
      "or 'both'.",
    )
    p.Define(
      'vocab_size',
      0,
      'Of the model; checked against the data. 0: not checked.',
    )
    p.Define(
      'temperature',
      5.0,
      'T of training: a group of n examples has a share proportional to '
      'n^(1/T). 1: that of its size; the higher, the more alike all are.',
    )
    p.Define(
      'bucket_lengths',
      [16, 32, 64, 128],
      'L, that both sides of rows are padded to, ascending.',
    )
    p.Define(
      'batch_tokens',
      0,
      'Ids of a mini-batch at most, on each side, padding included: the N of a '
      'bucket is batch_tokens / L, rounded down. 0: N is batch_size.',
    )
    p.Define(
      'batch_multiple',
      1,
      'What N is a multiple of, such as the number of micro-batches.',
    )
    p.Define(
      'packing',
      False,
      'Whether rows of training hold several sentences; they have the length '
      'of the last bucket.',
    )
    p.Define(
      'max_length',
      0,
      'Ids that sentences of training have at most, on each side; 0: as many '
      'as the last bucket has room for.',
    )
    p.Define(
      'max_examples_per_group',
      0,
      'In evaluation: of each group only so many, the first ones. 0: all.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name, known in (
      ('split', split.SPLITS),
      ('directions', preparation_options.DIRECTIONS),
    ):
      if p.Get(name) not in known:
        raise ValueError(
          f'TranslationInput: {name}={p.Get(name)!r} is none of '
          f'{", ".join(known)}'
        )
    if not p.temperature > 0:
      raise ValueError(
        f'TranslationInput: temperature={p.temperature} must be above 0'
      )
    for name in ('max_length', 'max_examples_per_group', 'vocab_size'):
      if p.Get(name) < 0:
        raise ValueError(f'TranslationInput: {name}={p.Get(name)} is below 0')
    self._buckets = batching.Buckets(
      p.bucket_lengths,
      batch_tokens=p.batch_tokens,
      batch_size=p.batch_size,
      batch_multiple=p.batch_multiple,
    )
    if p.packing and p.training:
      self._buckets = self._buckets[-1:]
    if p.max_length > self._buckets[-1].length:
      raise ValueError(
        f'TranslationInput: max_length={p.max_length} is more than the last of '
        f'bucket_lengths={list(p.bucket_lengths)}'
      )

  def BatchSpec(self) -> NestedMap:
    return self._Spec(*self._buckets[-1])

  def BatchSpecs(self) -> list[NestedMap]:
    return [self._Spec(*x) for x in self._buckets]

  def _Spec(self, length: int | None, rows: int | None) -> NestedMap:
    p, shape = self.params, [rows, length]
    fields = {
      'inputs': tf.int32,
      'source_paddings': tf.float32,
      'target_ids': tf.int32,
      'labels': tf.int32,
      'target_paddings': tf.float32,
    }
    if p.packing:
      fields |= {
        f'{side}_{what}': tf.int32
        for side in ('source', 'target')
        for what in ('positions', 'segment_ids')
      }
    spec = NestedMap({k: tf.TensorSpec(shape, v) for k, v in fields.items()})
    spec.weights = tf.TensorSpec(shape[:1], tf.float32)
    if not p.training:
      spec.example_ids = tf.TensorSpec(shape[:1], tf.int64)
      spec.group_ids = tf.TensorSpec(shape[:1], tf.int32)
    return spec

  @functools.cached_property
  def _data(self) -> translation_data.TranslationData:
    p = self.params
    data = translation_data.TranslationData(
      p.data_dir, p.split, languages=p.languages, directions=p.directions
    )
    if p.vocab_size and p.vocab_size != data.vocab_size:
      raise user_error.UserError(
        f'--data_dir={p.data_dir} has a vocabulary of {data.vocab_size} ids, '
        f'the model one of vocab_size={p.vocab_size}; prepare the data with '
        f'--vocab_size={p.vocab_size}, or use a model with as many as the data'
      )
    return data

  @property
  def groups(self) -> tuple[str, ...]:
    """The names of the groups, sorted; group_ids are places in it."""
    return tuple(x.name for x in self._data.groups)

  @property
  def vocab(self) -> vocabulary.Vocabulary:
    """The vocabulary of the data."""
    return self._data.vocab

  def Assets(self) -> dict[str, bytes]:
    """The vocabulary, without which a checkpoint says nothing."""
    return {record_files.VOCAB_FILE: self.vocab.model}

  @property
  def vocab_size(self) -> int:
    """The data's number of ids."""
    return self._data.vocab_size

  @property
  def num_examples(self) -> int:
    """Pairs of one pass; in training those that are too long among them."""
    limit = self._limit
    return sum(min(x.size, limit or x.size) for x in self._data.groups)

  @property
  def num_batches(self) -> int:
    return self._rows.plan.num_batches

  @property
  def num_dropped(self) -> dict[str, int]:
    """Of each group, how many pairs are too long to be trained on."""
    return dict(zip(self.groups, self._rows.dropped.tolist(), strict=True))

  @functools.cached_property
  def _sentences(self) -> list[sentences.Sentence]:
    return sentences.Read(self._data.groups, self._limit)

  def Sentence(self, example_id: int) -> sentences.Sentence:
    """The text of an example of evaluation.

    Args:
      example_id: from 0, in the order of groups and, within these, of records.

    Returns:
      Source, reference, and where they are from.
    """
    return self._sentences[example_id]

  @property
  def _limit(self) -> int:
    p = self.params
    return 0 if p.training else p.max_examples_per_group

  @functools.cached_property
  def _rows(self) -> _Rows:
    p, data, length = self.params, self._data, self._buckets[-1].length
    packs = p.packing and p.training
    pairs = pair_table.Read(data, self._limit)
    dropped = np.zeros(len(data.groups), np.int64)
    if p.training:
      pairs, dropped = self._WithoutLong(pairs, p.max_length or length)
    else:
      pairs = pairs.Cut(length)
    if packs:
      table, groups = row_table.RowTable.Packed(pairs, length)
    else:
      table = row_table.RowTable(pairs.source, pairs.target)
      groups = pairs.groups
    sizes = np.bincount(pairs.groups, minlength=len(data.groups))
    plan = batch_plan.BatchPlan(
      table.lengths,
      groups,
      buckets=self._buckets,
      rates=language_sampling.Rates(sizes, p.temperature),
      seed=p.random_seed,
    )
    with tf.init_scope(), tf.device(cluster.INPUT_DEVICE):
      return _Rows(table, tf.constant(groups), plan, dropped)

  def _WithoutLong(
    self, pairs: pair_table.Pairs, longest: int
  ) -> tuple[pair_table.Pairs, np.ndarray]:
    """(pairs that are not longer, how many of each group were)."""
    fits = pairs.Longer() <= longest
    if not fits.any():
      raise user_error.UserError(
        f'all {len(fits)} examples of --data_dir={self.params.data_dir} are '
        f'longer than {longest} ids; raise bucket_lengths, or max_length, of '
        'the input'
      )
    count = len(self._data.groups)
    dropped = np.bincount(pairs.groups[~fits], minlength=count)
    return pairs.Take(np.flatnonzero(fits)), dropped

  def Dataset(self, position: int = 0) -> tf.data.Dataset:
    p, rows = self.params, self._rows
    end = tf.int64.max if p.training else self.num_batches
    spec = self._Spec(None, None)

    @tf.autograph.experimental.do_not_convert
    def _Batch(place):
      choose = rows.plan.Training if p.training else rows.plan.Evaluation
      chosen, is_row, length = choose(place)
      batch = rows.table.Gather(
        chosen,
        is_row,
        length,
        packing_fields=p.packing,
        ends_source=not p.training,
      )
      if not p.training:
        batch['example_ids'] = chosen
        batch['group_ids'] = tf.gather(rows.groups, chosen)
      return {k: tf.ensure_shape(v, spec[k].shape) for k, v in batch.items()}

    return tf.data.Dataset.range(position, end).map(
      _Batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
