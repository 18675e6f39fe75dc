"""Dropout and drop path.

Both draw by BaseLayer.StatelessSeed, a function of the run's seed, the layer,
the step and the micro-batch: a re-materialized forward pass draws the same
mask, and so does any number of partitions.
"""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, hyperparams, nested_map


class Dropout(base_layer.BaseLayer):
  """Zeroes elements at random and scales the others up; training only."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('keep_prob', 1.0, 'Probability that an element stays.')
    p.Define(
      'noise_shape',
      None,
      'Shape of the mask: 1 where elements share a draw, None where each has '
      'its own; None for all of it draws for every element.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    _CheckKeepProb(self)

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layer; the outputs have the shape of the inputs."""
    p = self.params
    if self.do_eval or p.keep_prob == 1.0:
      return inputs
    noise_shape = p.noise_shape or [None] * inputs.shape.rank
    if len(noise_shape) != inputs.shape.rank:
      raise ValueError(
        f'{self.path}: noise_shape={noise_shape} and the inputs '
        f'{inputs.shape} differ in rank'
      )
    sizes = tf.shape(inputs)
    shape = [
      (inputs.shape[i] or sizes[i]) if size is None else size
      for i, size in enumerate(noise_shape)
    ]
    return _Drop(inputs, shape, p.keep_prob, self.StatelessSeed())


class DropPath(base_layer.BaseLayer):
  """Zeroes whole examples of a path at random; training only.

  AmoebaNet's regularizer: one draw for each example, so that for some examples
  an operation of a cell is missing.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('keep_prob', 1.0, 'Probability that an example stays.')
    p.Define(
      'ramp_steps',
      0,
      'The probability falls in a line from 1 at step 0 to keep_prob at this '
      'step; 0: it is keep_prob from the start.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    _CheckKeepProb(self)

  def _KeepProb(self) -> float | tf.Tensor:
    p = self.params
    if not p.ramp_steps:
      return p.keep_prob
    step = tf.cast(fprop_context.Current().global_step, tf.float32)
    return 1.0 - (1.0 - p.keep_prob) * tf.minimum(step / p.ramp_steps, 1.0)

  def FProp(self, theta: nested_map.NestedMap, inputs: tf.Tensor) -> tf.Tensor:
    """Applies the layer to [batch, ...]."""
    if self.do_eval or self.params.keep_prob == 1.0:
      return inputs
    batch = inputs.shape[0] or tf.shape(inputs)[0]
    shape = [batch] + [1] * (inputs.shape.rank - 1)
    return _Drop(inputs, shape, self._KeepProb(), self.StatelessSeed())


def _CheckKeepProb(layer: base_layer.BaseLayer) -> None:
  keep_prob = layer.params.keep_prob
  if not 0.0 < keep_prob <= 1.0:
    raise ValueError(
      f'{layer.path}: keep_prob={keep_prob} must be above 0 and at most 1'
    )


def _Drop(
  inputs: tf.Tensor,
  mask_shape: list,
  keep_prob: float | tf.Tensor,
  seed: tf.Tensor,
) -> tf.Tensor:
  """inputs / keep_prob where a draw falls below keep_prob, else 0."""
  # In half precision a draw would be one of a few hundred values.
  draw = tf.random.stateless_uniform(mask_shape, seed, dtype=tf.float32)
  scale = tf.where(draw < keep_prob, 1.0 / keep_prob, 0.0)
  return inputs * tf.cast(scale, inputs.dtype)
