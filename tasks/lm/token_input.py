"""Rows of consecutive tokens, the input of a language model."""

from __future__ import annotations

import functools
import math

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_input, hyperparams, nested_map
from tasks.lm import token_files


class TokenInput(base_input.RandomAccessInput):
  """Mini-batches of `inputs`, `labels` and `paddings` [N, T], `weights` [N].

  All files of a part are one long sequence, cut into rows of T tokens. Labels
  are the inputs' next tokens, so that every token but the first is a label
  once. The last row is filled up: its `paddings` are 1 where there is no label.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'data_dir',
      '',
      'A folder or file of text or ids, or "<python>", the sources of Python '
      'itself; see token_files.py (--data_dir).',
    )
    p.Define('split', 'train', "'train', 'dev' or 'test'.")
    p.Define('sequence_length', 128, 'T, tokens of a row.')
    p.Define(
      'vocab_size',
      token_files.TEXT_VOCAB_SIZE,
      "The network's number of ids, which all tokens must be below.",
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.split not in token_files.SPLITS:
      raise ValueError(
        f'TokenInput: split={p.split!r} is none of '
        f'{", ".join(token_files.SPLITS)}'
      )
    for name in ('sequence_length', 'vocab_size'):
      if p.Get(name) < 1:
        raise ValueError(f'TokenInput: {name}={p.Get(name)} must be 1 or more')

  def BatchSpec(self) -> nested_map.NestedMap:
    p = self.params
    shape = [p.batch_size, p.sequence_length]
    return nested_map.NestedMap(
      inputs=tf.TensorSpec(shape, tf.int32),
      labels=tf.TensorSpec(shape, tf.int32),
      paddings=tf.TensorSpec(shape, tf.float32),
      weights=tf.TensorSpec(shape[:1], tf.float32),
    )

  @functools.cached_property
  def _tokens(self) -> np.ndarray:
    """[tokens]; NumPy, because devices may not have been configured yet."""
    p = self.params
    return token_files.Load(p.data_dir, p.split, p.vocab_size)

  @functools.cached_property
  def _tensor(self) -> tf.Tensor:
    """The tokens, outside of the dataset's graph, which is limited to 2 GB."""
    with tf.init_scope():
      return tf.constant(self._tokens)

  @property
  def num_examples(self) -> int:
    return math.ceil((len(self._tokens) - 1) / self.params.sequence_length)

  def Examples(
    self, indices: tf.Tensor, seed: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    del seed
    time = self.params.sequence_length
    end = len(self._tokens) - 1
    places = indices[:, tf.newaxis] * time + tf.range(time + 1, dtype=tf.int64)
    rows = tf.gather(self._tensor, tf.minimum(places, end))
    rows = tf.cast(rows, tf.int32)
    return {
      'inputs': rows[:, :-1],
      'labels': rows[:, 1:],
      'paddings': tf.cast(places[:, 1:] > end, tf.float32),
    }
