"""Exponential moving averages of variables, for evaluation.

  shadow -= (1 - decay) * (shadow - variable)      after each update

A shadow stands on its variable's device. Evaluation takes its theta from the
shadows; the variables that training goes on with are never touched:

  average.Update(net.vars, num_updates)                    # In training.
  theta = net.ThetaFrom(average.Averages(net.vars))        # In evaluation.

AmoebaNet's ImageNet recipe (tensorflow/tpu) averages trainable weights and
batch norm's moving moments with decay 0.9999, and evaluates with the averages.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams, weights
from lingvo_gpipe.train import slots as slots_lib

VariableSpec = weights.VariableSpec


class ExponentialMovingAverage:
  """Shadows of all variables of floating point, trainable or not.

  With decay 0, the default, it is switched off: no shadows, Update does
  nothing, and the averages are the variables.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define(
      'decay', 0.0, 'Weight of the past, such as 0.9999; 0: no averages.'
    )
    p.Define(
      'ramp',
      True,
      'Whether the decay is at most (1 + t) / (10 + t) after t updates, so '
      'that early averages follow quickly.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()
    if not 0 <= self.params.decay < 1:
      raise ValueError(
        f'ExponentialMovingAverage: decay={self.params.decay} must be at least '
        '0 (switched off) and below 1'
      )
    self._shadows: dict[Any, tf.Variable] | None = None  # By Variable.ref().
    self._slots: dict[str, tf.Variable] = {}

  @property
  def enabled(self) -> bool:
    """Whether there are averages."""
    return self.params.decay > 0

  def SlotSpecs(self, variable_specs: Any) -> dict[str, VariableSpec]:
    """The shadows that averaging takes; no memory is taken.

    Args:
      variable_specs: tree of VariableSpec, or one.

    Returns:
      {'<variable path>/ema': spec}.
    """
    if not self.enabled:
      return {}
    shadows = [
      dataclasses.replace(
        spec, path=f'{spec.path}/ema', trainable=False, collections=()
      )
      for spec in tf.nest.flatten(variable_specs)
      if spec.dtype.is_floating
    ]
    return {shadow.path: shadow for shadow in shadows}

  def InstantiateVariables(
    self, variables: Any, variable_specs: Any = None
  ) -> None:
    """Creates the shadows, equal to the variables, on their devices.

    Args:
      variables: tree of tf.Variable.
      variable_specs: tree of their specs; None: by the variables' names.

    Raises:
      RuntimeError: in a second call.
    """
    if self._shadows is not None:
      raise RuntimeError('the moving averages exist already')
    self._shadows = {}
    specs = slots_lib.SpecsOf(variables, variable_specs)
    flat = tf.nest.flatten(variables)
    for spec, variable in zip(specs, flat, strict=True):
      for path in self.SlotSpecs(spec):
        with tf.device(variable.device):
          shadow = tf.Variable(
            variable.read_value(), trainable=False, name=path
          )
        self._shadows[variable.ref()] = shadow
        self._slots[path] = shadow

  @property
  def slots(self) -> dict[str, tf.Variable]:
    """The shadows by their names in checkpoints."""
    self._CheckInstantiated()
    return dict(self._slots)

  def _CheckInstantiated(self) -> None:
    if self._shadows is None:
      raise RuntimeError(
        'there are no moving averages yet: call InstantiateVariables('
        'variables) first'
      )

  def _Pairs(self, variables: Any) -> list[tuple[tf.Variable, tf.Variable]]:
    """(variable, shadow) for the variables that have one."""
    self._CheckInstantiated()
    return [
      (v, self._shadows[v.ref()])
      for v in tf.nest.flatten(variables)
      if v.ref() in self._shadows
    ]

  def Reset(self, variables: Any) -> None:
    """Makes the shadows equal to the variables, as after loading weights."""
    for variable, shadow in self._Pairs(variables):
      with tf.device(shadow.device):
        shadow.assign(variable)

  @tf.autograph.experimental.do_not_convert
  def Update(self, variables: Any, num_updates: Any) -> None:
    """Moves the shadows towards the variables.

    Args:
      variables: tree of tf.Variable.
      num_updates: int64 scalar t, the updates before this one; for the ramp.
    """
    if not self.enabled:
      return
    keep = tf.constant(self.params.decay, tf.float64)
    if self.params.ramp:
      t = tf.cast(num_updates, tf.float64)
      keep = tf.minimum(keep, (1.0 + t) / (10.0 + t))
    rate = 1.0 - keep
    for variable, shadow in self._Pairs(variables):
      with tf.device(shadow.device):
        shadow.assign_sub(tf.cast(rate, shadow.dtype) * (shadow - variable))

  def Averages(self, variables: Any) -> Any:
    """The tree with shadows in the place of the variables that have one.

    Args:
      variables: tree of tf.Variable, such as `net.vars`.

    Returns:
      A tree of the same structure, for `net.ThetaFrom`.
    """
    self._CheckInstantiated()
    return tf.nest.map_structure(
      lambda v: self._shadows.get(v.ref(), v), variables
    )
