"""Inputs: mini-batches as a pure function of a seed and a position.

A position is the number of mini-batches that came before. Training restarts
exactly where it stopped by asking for `Dataset(position)`; nothing else of an
input needs to be saved.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams, nested_map, user_error, weights

NestedMap = nested_map.NestedMap

# Of the cipher that permutes indices; 4 are its default.
_SHUFFLE_ROUNDS = 8

_DATA_ERROR = 'error in the data'


class BaseInput:
  """The base class of inputs.

  Making one costs nothing; data is read by `Dataset` and `num_examples`.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define('batch_size', 64, 'N, examples of a mini-batch.')
    p.Define(
      'training',
      False,
      'True: examples repeat without end, shuffled, possibly augmented. False: '
      'each comes once, in a fixed order.',
    )
    p.Define('random_seed', 1, 'Of the order and the augmentation.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()
    if params.batch_size < 1:
      raise ValueError(
        f'{type(self).__name__}: batch_size={params.batch_size} must be 1 or '
        'more'
      )

  def BatchSpec(self) -> NestedMap:
    """What a mini-batch consists of; known without the data.

    Returns:
      NestedMap of TensorSpecs [batch_size, ...] with static shapes, among them
      `weights` [batch_size].
    """
    raise NotImplementedError(f'{type(self).__name__}.BatchSpec')

  def BatchSpecs(self) -> list[NestedMap]:
    """All shapes in which training mini-batches come; see BatchSpec.

    Inputs that pad to a few lengths (buckets) have several; BatchSpec is then
    the largest, by which partitions are planned.
    """
    return [self.BatchSpec()]

  def Dataset(self, position: int = 0) -> tf.data.Dataset:
    """Mini-batches from `position` on.

    Args:
      position: number of mini-batches that came before.

    Returns:
      Dataset of dicts like BatchSpec(). In training it has no end. Else its
      last mini-batch is filled up to batch_size with examples of weight 0.
    """
    raise NotImplementedError(f'{type(self).__name__}.Dataset')

  def Assets(self) -> dict[str, bytes]:
    """What a checkpoint is understood by, such as a vocabulary.

    Returns:
      {name of a file: its content}, which a run keeps with its checkpoints.
    """
    return {}

  def ServingSignatures(self) -> dict[str, Any]:
    """How a model with this input is called once it is exported.

    Returns:
      {name: export.serving_signature.ServingSignature}, 'serving_default' among
      them.
    """
    raise NotImplementedError(
      f'{type(self).__name__} has no ServingSignatures, so models with it '
      'cannot be exported; define the method, see lingvo_gpipe/export/'
      'serving_signature.py'
    )

  @property
  def num_examples(self) -> int:
    """Examples of one pass over the data."""
    raise NotImplementedError(f'{type(self).__name__}.num_examples')

  @property
  def num_batches(self) -> int:
    """Mini-batches of one pass; the last one may be a partial one."""
    return math.ceil(self.num_examples / self.params.batch_size)


class RandomAccessInput(BaseInput):
  """An input over examples that can be read in any order.

  Subclasses define `num_examples`, `BatchSpec` and `Examples`; order, epochs,
  position and the partial last mini-batch are seen to here.
  """

  def Examples(
    self, indices: tf.Tensor, seed: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Reads examples, and augments them in training.

    Args:
      indices: int64 [batch_size], each below num_examples.
      seed: int64 [2] for tf.random.stateless_*, a new one for each mini-batch.

    Returns:
      The fields [batch_size, ...] of BatchSpec() but `weights`.
    """
    raise NotImplementedError(f'{type(self).__name__}.Examples')

  def Dataset(self, position: int = 0) -> tf.data.Dataset:
    end = tf.int64.max if self.params.training else self.num_batches
    if not self.num_examples:
      raise ValueError(f'{type(self).__name__} has no examples: {self.params}')
    return tf.data.Dataset.range(position, end).map(
      self._Batch, num_parallel_calls=1, deterministic=True
    )

  @tf.autograph.experimental.do_not_convert
  def _Batch(self, position: tf.Tensor) -> dict[str, tf.Tensor]:
    p = self.params
    indices, weight = self._Indices(position)
    seed = tf.stack([_Int64(weights.Hash64('input', p.random_seed)), position])
    batch = dict(self.Examples(indices, seed))
    spec = self.BatchSpec()
    batch['weights'] = tf.cast(weight, spec.weights.dtype)
    return {
      name: tf.ensure_shape(value, spec[name].shape)
      for name, value in batch.items()
    }

  def _Indices(self, position: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Which examples mini-batch `position` has, and their weights.

    Every epoch of training is a permutation of its own; a mini-batch may hold
    the end of one epoch and the beginning of the next.

    Args:
      position: int64 scalar.

    Returns:
      (indices, weights), int64 [batch_size] each.
    """
    p, size = self.params, self.num_examples
    place = position * p.batch_size + tf.range(p.batch_size, dtype=tf.int64)
    if not p.training:
      inside = place < size
      return tf.where(inside, place, 0), tf.cast(inside, tf.int64)
    indices = EpochOrder(place, size, p.random_seed)
    return indices, tf.ones_like(indices)


def EpochOrder(place: tf.Tensor, size: int, seed: int) -> tf.Tensor:
  """Which example stands at a place of an order without end.

  Every `size` places are an epoch, a permutation of its own.

  Args:
    place: int64 [n], 0 or more.
    size: number of examples.
    seed: of the order.

  Returns:
    int64 [n], each below `size`.
  """
  # index_shuffle, the public name of this kernel, takes one seed only.
  key = weights.Hash64('order', seed)
  return tf.raw_ops.RandomIndexShuffle(
    index=place % size,
    seed=tf.stack(
      [tf.fill(tf.shape(place), _Int64(k)) for k in divmod(key, 2**32)]
      + [place // size],
      axis=1,
    ),
    max_index=_Int64(size - 1),
    rounds=_SHUFFLE_ROUNDS,
  )


def Check(condition: tf.Tensor, message: Callable[[], tf.Tensor]) -> tf.Tensor:
  """Fails, in the graph of a Dataset, for data that only its owner can mend.

  Args:
    condition: boolean scalar.
    message: makes the string scalar that says what is wrong, which file it is
      and what to do; called in the graph, and run only where it is needed.

  Returns:
    `condition`; what depends on it comes after the check.
  """
  text = tf.cond(condition, lambda: tf.constant(''), message)
  with tf.control_dependencies(
    [tf.debugging.Assert(condition, [_DATA_ERROR, text])]
  ):
    return tf.identity(condition)


@contextlib.contextmanager
def UserErrors() -> Iterator[None]:
  """Turns what Check raises, in a Dataset read in the body, into UserErrors.

  Yields:
    Nothing.

  Raises:
    UserError: with the message of the check that failed.
  """
  try:
    yield
  except tf.errors.InvalidArgumentError as e:
    found = re.search(rf'\[{_DATA_ERROR}\] \[(.*)\]', e.message)
    if not found:
      raise
    raise user_error.UserError(found[1]) from e


def _Int64(value: int) -> tf.Tensor:
  return tf.constant(value, tf.int64)
