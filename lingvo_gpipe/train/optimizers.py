"""Optimizers: thin Params over TensorFlow's fused update kernels.

An optimizer declares its slots (state per variable) as specs, so that their
memory is known before any is taken, and updates one variable in place, on that
variable's device:

  optimizer = optimizers.Momentum.Params().Instantiate()
  specs = optimizer.SlotSpecs(variable_spec)       # {slot name: VariableSpec}
  slots = {name: slots.CreateSlot(s, variable) for name, s in specs.items()}
  optimizer.Apply(variable, gradient, slots, learning_rate, num_updates)

In the formulas g is the gradient, lr the learning rate, w the variable.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams, weights
from lingvo_gpipe.train import slots as slots_lib

VariableSpec = weights.VariableSpec


class Optimizer:
  """The base class; subclasses define `_Slots` and `_Apply`."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    return hyperparams.InstantiableParams(cls)

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()

  def SlotSpecs(self, variable: VariableSpec) -> dict[str, VariableSpec]:
    """The slots that this optimizer keeps for a variable.

    Args:
      variable: the variable's spec.

    Returns:
      {slot name: spec}.
    """
    return {
      name: slots_lib.SlotSpec(variable, name, value)
      for name, value in self._Slots().items()
    }

  def Apply(
    self,
    variable: tf.Variable,
    gradient: tf.Tensor,
    slots: dict[str, tf.Variable],
    learning_rate: Any,
    num_updates: Any,
  ) -> None:
    """Updates the variable and its slots, on their device, in place.

    Args:
      variable: to be updated.
      gradient: dense, of the variable's shape and dtype.
      slots: one for each of SlotSpecs, by name.
      learning_rate: scalar.
      num_updates: int64 scalar, how many updates were made before this one.
    """

    def _Scalar(value):
      if isinstance(value, float):  # tf.cast would make it a float32 first.
        return tf.constant(value, variable.dtype)
      return tf.cast(value, variable.dtype)

    with tf.device(variable.device):
      self._Apply(
        variable.handle,
        gradient,
        {name: slot.handle for name, slot in slots.items()},
        _Scalar(learning_rate),
        num_updates,
        _Scalar,
      )

  def _Slots(self) -> dict[str, float]:
    """{slot name: initial value of its elements}."""
    return {}

  def _Apply(self, var, grad, slots, learning_rate, num_updates, scalar):
    """Runs the kernel.

    Args:
      var: the variable's resource.
      grad: gradient.
      slots: {slot name: resource}.
      learning_rate: scalar of the variable's dtype.
      num_updates: int64 scalar.
      scalar: turns a number into a scalar of the variable's dtype.
    """
    raise NotImplementedError(f'{type(self).__name__}._Apply')


class SGD(Optimizer):
  """w -= lr * g. No slots."""

  def _Apply(self, var, grad, slots, learning_rate, num_updates, scalar):
    tf.raw_ops.ResourceApplyGradientDescent(
      var=var, alpha=learning_rate, delta=grad
    )


class Momentum(Optimizer):
  """accum = momentum * accum + g; w -= lr * accum.

  With `use_nesterov` the step is w -= lr * (g + momentum * accum), with the new
  accum (Sutskever et al., ICML 2013).
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('momentum', 0.9, 'Decay of the accumulated gradient.')
    p.Define('use_nesterov', False, 'Whether to look ahead.')
    return p

  def _Slots(self) -> dict[str, float]:
    return {'accum': 0.0}

  def _Apply(self, var, grad, slots, learning_rate, num_updates, scalar):
    tf.raw_ops.ResourceApplyMomentum(
      var=var,
      accum=slots['accum'],
      lr=learning_rate,
      grad=grad,
      momentum=scalar(self.params.momentum),
      use_nesterov=self.params.use_nesterov,
    )


class RMSProp(Optimizer):
  """TensorFlow's RMSProp, that of the AmoebaNet recipes.

    ms = ms + (1 - decay) * (g ** 2 - ms)
    mom = momentum * mom + lr * g / sqrt(ms + epsilon)
    w -= mom

  Epsilon is inside the square root, and the learning rate inside the
  momentum. `ms` starts at 1, as in TensorFlow 1's RMSPropOptimizer, which makes
  the first steps small; implementations that add epsilon outside the root or
  start from 0 need other learning rates.

  The GPipe paper trains with 12 bytes per parameter: the variable and these two
  slots in float32 (Table 1).
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('decay', 0.9, 'Decay of the mean square of gradients.')
    p.Define('momentum', 0.9, 'Decay of the accumulated steps.')
    p.Define('epsilon', 1.0, 'Added to the mean square, under the root.')
    p.Define('initial_mean_square', 1.0, 'What the mean square starts from.')
    return p

  def _Slots(self) -> dict[str, float]:
    return {'ms': self.params.initial_mean_square, 'mom': 0.0}

  def _Apply(self, var, grad, slots, learning_rate, num_updates, scalar):
    tf.raw_ops.ResourceApplyRMSProp(
      var=var,
      ms=slots['ms'],
      mom=slots['mom'],
      lr=learning_rate,
      rho=scalar(self.params.decay),
      momentum=scalar(self.params.momentum),
      epsilon=scalar(self.params.epsilon),
      grad=grad,
    )


class Adam(Optimizer):
  """Adam (Kingma and Ba, arXiv 1412.6980), in the order of its section 2.

    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g ** 2
    w -= lr * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + epsilon)

  t is num_updates + 1, so steps that were skipped do not count. Epsilon is
  outside the root and compared with an uncorrected v: the paper's "epsilon
  hat".
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('beta1', 0.9, 'Decay of the mean gradient.')
    p.Define('beta2', 0.999, 'Decay of the mean square of gradients.')
    p.Define('epsilon', 1e-8, 'Added to the root of the mean square.')
    return p

  def _Slots(self) -> dict[str, float]:
    return {'m': 0.0, 'v': 0.0}

  def _Apply(self, var, grad, slots, learning_rate, num_updates, scalar):
    p = self.params
    t = tf.cast(num_updates, tf.float64) + 1.0
    tf.raw_ops.ResourceApplyAdam(
      var=var,
      m=slots['m'],
      v=slots['v'],
      beta1_power=scalar(tf.constant(p.beta1, tf.float64) ** t),
      beta2_power=scalar(tf.constant(p.beta2, tf.float64) ** t),
      lr=learning_rate,
      beta1=scalar(p.beta1),
      beta2=scalar(p.beta2),
      epsilon=scalar(p.epsilon),
      grad=grad,
    )
