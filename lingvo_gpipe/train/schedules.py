"""Schedules: a number as a function of the step.

The learner multiplies its base learning rate by one. `step` is the number of
updates made so far, so that the first update sees step 0.

  schedule = schedules.LinearRampup.Params().Set(
    warmup_steps=500,
    schedule=schedules.Exponential.Params().Set(
      decay_rate=0.97, decay_steps=400, staircase=True
    ),
  ).Instantiate()
  float(schedule.Value(750))

Values are float64 scalars, because steps are exact in it up to 2**53; whoever
uses one casts it.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams


def _CheckPositive(schedule: Schedule, *names: str) -> None:
  for name in names:
    value = schedule.params.Get(name)
    if value is None:
      raise ValueError(
        f'{type(schedule).__name__}: {name} is not set: set it, or call '
        'FillDecaySteps, as BaseTask does with train.max_steps'
      )
    if value <= 0:
      raise ValueError(
        f'{type(schedule).__name__}: {name}={value} must be positive'
      )


class Schedule:
  """The base class; subclasses define `_Value`."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    return hyperparams.InstantiableParams(cls)

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()

  def Value(self, step: Any) -> tf.Tensor:
    """The value at `step`.

    Args:
      step: int64 scalar, or an int: how many updates have been made.

    Returns:
      float64 scalar.
    """
    if isinstance(step, int):  # tf.cast would make it an int32 first.
      step = tf.constant(step, tf.int64)
    return self._Value(tf.cast(step, tf.float64))

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    """As Value, with `step` a float64 scalar."""
    raise NotImplementedError(f'{type(self).__name__}._Value')


class Constant(Schedule):
  """Always `value`."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('value', 1.0, 'The value.')
    return p

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    return tf.constant(self.params.value, tf.float64)


class PiecewiseConstant(Schedule):
  """values[i] from boundaries[i - 1] on, to before boundaries[i]."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('boundaries', [], 'Increasing steps at which the value changes.')
    p.Define('values', [1.0], 'One value more than there are boundaries.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if len(p.values) != len(p.boundaries) + 1:
      raise ValueError(
        f'PiecewiseConstant: {len(p.values)} values for {len(p.boundaries)} '
        f'boundaries; give {len(p.boundaries) + 1} values'
      )
    if sorted(set(p.boundaries)) != list(p.boundaries):
      raise ValueError(
        f'PiecewiseConstant: boundaries {p.boundaries} must increase'
      )

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    p = self.params
    passed = step >= tf.constant(list(p.boundaries), tf.float64)
    index = tf.reduce_sum(tf.cast(passed, tf.int32))
    return tf.gather(tf.constant(list(p.values), tf.float64), index)


class Exponential(Schedule):
  """max(minimum, decay_rate ** (step / decay_steps)).

  With `staircase` the exponent is rounded down: the value changes once every
  decay_steps, such as every 2.4 epochs by 0.97 in AmoebaNet's ImageNet recipe
  (Real et al., arXiv 1802.01548, and its code in tensorflow/tpu).
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('decay_rate', 0.97, 'Factor per decay_steps.')
    p.Define('decay_steps', 1.0, 'Steps per factor; need not be whole.')
    p.Define('staircase', False, 'Whether it changes in jumps.')
    p.Define('minimum', 0.0, 'It falls no further.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    _CheckPositive(self, 'decay_rate', 'decay_steps')

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    p = self.params
    exponent = step / p.decay_steps
    if p.staircase:
      exponent = tf.floor(exponent)
    rate = tf.constant(p.decay_rate, tf.float64)
    return tf.maximum(tf.pow(rate, exponent), p.minimum)


class _Decay(Schedule):
  """From 1 to `final` in decay_steps; subclasses define the way."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'decay_steps',
      None,
      'Steps until it is `final`. None: all of the training; see '
      'FillDecaySteps.',
    )
    p.Define('final', 0.0, 'The value from decay_steps on.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    _CheckPositive(self, 'decay_steps')

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    p = self.params
    part = tf.minimum(step / p.decay_steps, 1.0)
    return p.final + (1.0 - p.final) * self._Left(part)

  def _Left(self, part: tf.Tensor) -> tf.Tensor:
    """How much of the way is left, from 1 to 0 as `part` goes from 0 to 1."""
    raise NotImplementedError(f'{type(self).__name__}._Left')


class Polynomial(_Decay):
  """final + (1 - final) * (1 - min(1, step / decay_steps)) ** power.

  From 1 to `final`; power 1 is the linear decay.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('power', 1.0, 'Exponent.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    _CheckPositive(self, 'power')

  def _Left(self, part: tf.Tensor) -> tf.Tensor:
    return tf.pow(1.0 - part, self.params.power)


class Cosine(_Decay):
  """final + (1 - final) * (1 + cos(pi * min(1, step / decay_steps))) / 2.

  Half a period, from 1 to `final` (Loshchilov and Hutter, arXiv 1608.03983,
  without restarts).
  """

  def _Left(self, part: tf.Tensor) -> tf.Tensor:
    return (1.0 + tf.cos(math.pi * part)) / 2


class Transformer(Schedule):
  """model_dim ** -0.5 * min(s ** -0.5, s * warmup_steps ** -1.5), s = step + 1.

  Rises linearly for warmup_steps, then falls with the inverse square root of
  the step (Vaswani et al., arXiv 1706.03762, section 5.3). With model_dim=1 it
  is the plain inverse square root, whose peak is warmup_steps ** -0.5.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('model_dim', 1, "The model's dimension d.")
    p.Define('warmup_steps', 4000, 'Steps until the peak.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    _CheckPositive(self, 'model_dim', 'warmup_steps')

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    p = self.params
    s = step + 1.0
    return p.model_dim**-0.5 * tf.minimum(
      tf.math.rsqrt(s), s * float(p.warmup_steps) ** -1.5
    )


class LinearRampup(Schedule):
  """A linear warm-up in front of another schedule f.

  For step < warmup_steps:
    (initial + (1 - initial) * step / warmup_steps) * f(0)
  and from there on f(step), or f(step - warmup_steps) with `delay_schedule`.

  Without the delay, this is AmoebaNet's (tensorflow/tpu): the decay counts the
  warm-up's steps too, so the value may jump down where the warm-up ends.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('warmup_steps', 0, 'Steps of the warm-up; 0: none.')
    p.Define('initial', 0.0, 'Share of f(0) at step 0.')
    p.Define('schedule', Constant.Params(), 'What follows, f.')
    p.Define('delay_schedule', False, 'Whether f starts after the warm-up.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if self.params.warmup_steps < 0:
      raise ValueError(
        f'LinearRampup: warmup_steps={self.params.warmup_steps} is negative'
      )
    self._schedule = self.params.schedule.Instantiate()

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    p = self.params
    if p.warmup_steps == 0:
      return self._schedule.Value(step)
    ramp = p.initial + (1.0 - p.initial) * step / p.warmup_steps
    start = p.warmup_steps if p.delay_schedule else 0
    # Only the branch taken has to be defined at its step, hence the maximum.
    after = self._schedule.Value(tf.maximum(step - start, 0.0))
    return tf.where(
      step < p.warmup_steps, ramp * self._schedule.Value(0), after
    )


class Minimum(Schedule):
  """The smallest of several schedules, such as a warm-up and a decay."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('schedules', [], 'Params of the schedules.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    if not self.params.schedules:
      raise ValueError('Minimum: give at least one of its param "schedules"')
    self._schedules = [p.Instantiate() for p in self.params.schedules]

  def _Value(self, step: tf.Tensor) -> tf.Tensor:
    return tf.reduce_min(tf.stack([s.Value(step) for s in self._schedules]))


def FillDecaySteps(params: hyperparams.Params, num_steps: int) -> None:
  """Sets every `decay_steps` that is None, also of schedules within.

  So that a run that is made longer or shorter (--max_steps) still decays to its
  own end.

  Args:
    params: of a schedule; changed.
    num_steps: of the training.
  """
  paths = []

  def _See(path: str, value: Any) -> None:
    if value is None and path.rpartition('.')[2] == 'decay_steps':
      paths.append(path)

  params.Visit(_See)
  for path in paths:
    params.SetPath(path, num_steps)
