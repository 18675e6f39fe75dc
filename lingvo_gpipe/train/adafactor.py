"""Adafactor: Adam's adaptation in a fraction of its memory.

Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost
(arXiv 1804.04235). Of the mean squares of a matrix's gradients it keeps the
means of rows and columns only, so a [m, n] matrix has m + n numbers of state
where RMSProp has 2 m n: 4 bytes per parameter and not 12.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams, weights
from lingvo_gpipe.train import optimizers
from lingvo_gpipe.train import slots as slots_lib

VariableSpec = weights.VariableSpec


class Adafactor(optimizers.Optimizer):
  """Algorithms 4 and 5 of the paper, with an optional momentum.

    decay = 1 - t ** -decay_exponent
    s = g ** 2 + epsilon1
    of a matrix:
      vr = decay * vr + (1 - decay) * (mean of each row of s)
      vc = decay * vc + (1 - decay) * (mean of each column of s)
      v = vr vc^T / mean(vr)
    of anything else:
      v = decay * v + (1 - decay) * s
    u = g / sqrt(v)
    u /= max(1, RMS(u) / clip_threshold)
    u *= lr * max(epsilon2, RMS(w))
    m = beta1 * m + (1 - beta1) * u
    w -= m

  Without multiply_by_parameter_scale the size of w is left out of u; without
  beta1 m is u.

  t is num_updates + 1, so steps that were skipped do not count. RMS is the root
  of the mean square of the elements. A tensor of more dimensions is a stack of
  matrices of its last two. Where row and column means would take no less memory
  than v, as with a single row, v is kept. Everything is computed, and kept, in
  float32 or better.

  The paper's step size, min(1e-2, 1 / sqrt(t)) after a warm-up of 1e-6 * t, is
  `learning_rate=1.0` with `schedules.Transformer` of warmup_steps=10000.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'multiply_by_parameter_scale',
      True,
      "Whether the learning rate is relative to the variable's size.",
    )
    p.Define(
      'decay_exponent',
      0.8,
      'How fast the decay of mean squares goes to 1; larger is faster.',
    )
    p.Define(
      'clip_threshold', 1.0, 'Largest RMS of an update before the step size.'
    )
    p.Define(
      'beta1',
      None,
      'Decay of the mean update, which takes memory like the variable; None: '
      'no momentum.',
    )
    p.Define('epsilon1', 1e-30, 'Added to the squares of gradients.')
    p.Define(
      'epsilon2',
      1e-3,
      'Least size that multiply_by_parameter_scale takes a variable for.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name in ('decay_exponent', 'clip_threshold', 'epsilon1', 'epsilon2'):
      if not p.Get(name) > 0:
        raise ValueError(f'Adafactor: {name}={p.Get(name)} must be positive')
    if p.beta1 is not None and not 0 <= p.beta1 < 1:
      raise ValueError(f'Adafactor: beta1={p.beta1} must be None or in [0, 1)')

  def SlotSpecs(self, variable: VariableSpec) -> dict[str, VariableSpec]:
    shape = variable.shape
    if _IsFactored(shape):
      shapes = {'vr': shape[:-1], 'vc': shape[:-2] + shape[-1:]}
    else:
      shapes = {'v': shape}
    if self.params.beta1 is not None:
      shapes['m'] = shape
    return {
      name: dataclasses.replace(
        slots_lib.SlotSpec(variable, name, 0.0),
        shape=slot_shape,
        dtype=weights.AtLeastFloat32(variable.dtype),
      )
      for name, slot_shape in shapes.items()
    }

  def Apply(
    self,
    variable: tf.Variable,
    gradient: tf.Tensor,
    slots: dict[str, tf.Variable],
    learning_rate: Any,
    num_updates: Any,
  ) -> None:
    p = self.params
    dtype = weights.AtLeastFloat32(variable.dtype)
    with tf.device(variable.device):
      t = tf.cast(num_updates, tf.float64) + 1.0
      share = tf.cast(t**-p.decay_exponent, dtype)  # 1 - decay
      update = self._DividedByRoot(tf.cast(gradient, dtype), slots, share)
      update /= tf.maximum(_Rms(update) / p.clip_threshold, 1.0)
      # The hint: tf.cast alone would make a float a float32 first.
      rate = tf.convert_to_tensor(learning_rate, dtype_hint=tf.float64)
      rate = tf.cast(rate, dtype)
      if p.multiply_by_parameter_scale:
        size = _Rms(tf.cast(variable.read_value(), dtype))
        rate *= tf.maximum(size, p.epsilon2)
      update *= rate
      if p.beta1 is not None:
        update = _Advance(slots['m'], update, 1.0 - p.beta1)
      variable.assign_sub(tf.cast(update, variable.dtype))

  def _DividedByRoot(
    self, gradient: tf.Tensor, slots: dict[str, tf.Variable], share: tf.Tensor
  ) -> tf.Tensor:
    """Advances the mean squares.

    Args:
      gradient: of the variable.
      slots: v, or vr and vc.
      share: scalar, weight of the new squares.

    Returns:
      gradient / sqrt(v).
    """
    squares = tf.square(gradient) + self.params.epsilon1
    if 'v' in slots:
      return gradient * tf.math.rsqrt(_Advance(slots['v'], squares, share))
    vr = _Advance(slots['vr'], tf.reduce_mean(squares, -1), share)
    vc = _Advance(slots['vc'], tf.reduce_mean(squares, -2), share)
    # Products of vr, vc and mean, or of their roots, may leave the range of
    # float32 where rows or columns have no gradient yet: 0 / 0. One factor
    # after the other keeps to it.
    mean = tf.reduce_mean(vr, -1, keepdims=True)
    rows = tf.math.rsqrt(vr) * tf.sqrt(mean)
    columns = tf.math.rsqrt(vc)
    return gradient * rows[..., tf.newaxis] * columns[..., tf.newaxis, :]


def _IsFactored(shape: tuple[int, ...]) -> bool:
  """Whether means of rows and columns take less memory than the matrix."""
  return len(shape) > 1 and shape[-2] + shape[-1] < shape[-2] * shape[-1]


def _Rms(x: tf.Tensor) -> tf.Tensor:
  return tf.sqrt(tf.reduce_mean(tf.square(x)))


def _Advance(
  slot: tf.Variable, value: tf.Tensor, share: float | tf.Tensor
) -> tf.Tensor:
  """Moves a slot towards a value; returns what the slot is then."""
  new = slot + share * (value - slot)
  slot.assign(new)
  return new
