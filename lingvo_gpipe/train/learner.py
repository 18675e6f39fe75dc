"""The learner: gradients to updated variables, on every partition's device.

One update of variables that are spread over devices:

  each device   squares = [sum(g ** 2) for each of its gradients]
  one place     norm = sqrt(sum of all squares); finite?; clip scale; lr
  each device   if finite: optimizer.Apply(w, scale * g, slots, lr)

Only scalars leave a device. The sum is taken in the order of the variables,
whatever their devices, so that any number of partitions gives the same norm to
the last bit. The norms of partitions are sums of the same squares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe import hyperparams, nested_map, weights
from lingvo_gpipe.train import optimizers, schedules
from lingvo_gpipe.train import slots as slots_lib

NestedMap = nested_map.NestedMap
VariableSpec = weights.VariableSpec

# Weights that the L2 regularizer pulls towards zero are in this collection.
L2_COLLECTION = 'l2'


@dataclasses.dataclass(frozen=True)
class _Trained:
  """A variable that the learner has slots for."""

  spec: VariableSpec
  slots: dict[str, tf.Variable]


@dataclasses.dataclass(frozen=True)
class _Update:
  """One variable's part in an update.

  Attributes:
    index: its place among all.
    partition: the one that it belongs to.
    variable: the variable.
    gradient: a tensor or tf.IndexedSlices.
    trained: its spec and slots.
  """

  index: int
  partition: int
  variable: tf.Variable
  gradient: Any
  trained: _Trained


class Learner:
  """Clips, regularizes, and applies gradients by an optimizer."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', 'learner', "Prefix of the learner's own counters.")
    p.Define('optimizer', optimizers.SGD.Params(), 'How variables change.')
    p.Define('learning_rate', 0.01, 'Base learning rate.')
    p.Define(
      'lr_schedule',
      schedules.Constant.Params(),
      'Multiplies the base learning rate, a function of the step.',
    )
    p.Define(
      'clip_gradient_norm_to_value',
      0.0,
      'Scales all gradients down together to this norm, that of the vector of '
      'all gradients; 0: no clipping.',
    )
    p.Define(
      'clip_gradient_single_norm_to_value',
      0.0,
      "Scales each variable's gradient down to this norm; 0: no clipping.",
    )
    p.Define(
      'l2_regularizer_weight',
      0.0,
      'Adds this times the weight to the gradient of weights in the collection '
      '"l2", before norms are taken: the gradient of weight / 2 * sum(w ** 2).',
    )
    p.Define(
      'skip_nonfinite',
      True,
      'Whether an update whose gradient norm is not finite is left out.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = params.Copy()
    self.params.Freeze()
    p = self.params
    if not p.name:
      raise ValueError('Learner: its param "name" is empty')
    for name in (
      'learning_rate',
      'clip_gradient_norm_to_value',
      'clip_gradient_single_norm_to_value',
      'l2_regularizer_weight',
    ):
      if not p.Get(name) >= 0:
        raise ValueError(f'Learner: {name}={p.Get(name)} must not be negative')
    if p.clip_gradient_norm_to_value and p.clip_gradient_single_norm_to_value:
      raise ValueError(
        'Learner: set clip_gradient_norm_to_value or '
        'clip_gradient_single_norm_to_value, not both'
      )
    self.optimizer = p.optimizer.Instantiate()
    self.lr_schedule = p.lr_schedule.Instantiate()
    self._trained: dict[Any, _Trained] | None = None  # By Variable.ref().
    self._counters: dict[str, tf.Variable] = {}

  # Slots.

  def SlotSpecs(self, variable_specs: Any) -> dict[str, VariableSpec]:
    """The slots that training the variables takes; no memory is taken.

    Args:
      variable_specs: tree of VariableSpec, or one.

    Returns:
      {'<variable path>/<slot name>': spec}, for variables that are trainable.
    """
    return {
      slot.path: slot
      for spec in tf.nest.flatten(variable_specs)
      if spec.trainable
      for slot in self.optimizer.SlotSpecs(spec).values()
    }

  def InstantiateVariables(
    self, variables: Any, variable_specs: Any = None
  ) -> None:
    """Creates the slots, each on the device of its variable.

    Args:
      variables: tree of tf.Variable.
      variable_specs: tree of their specs, which tell what is trainable and what
        is regularized. None: by the variables' names and trainability; then
        nothing can be regularized.

    Raises:
      RuntimeError: in a second call.
      ValueError: where L2 is to regularize and no variable is there for it.
    """
    if self._trained is not None:
      raise RuntimeError(f'{self.params.name}: its slots exist already')
    specs = slots_lib.SpecsOf(variables, variable_specs)
    if self.params.l2_regularizer_weight and not any(
      s.trainable and L2_COLLECTION in s.collections for s in specs
    ):
      raise ValueError(
        f'{self.params.name}: l2_regularizer_weight='
        f'{self.params.l2_regularizer_weight}, but no trainable variable is in '
        f'the collection {L2_COLLECTION!r}; declare weights with WeightParams('
        f'collections=({L2_COLLECTION!r},)) and pass variable_specs, or set it '
        'to 0'
      )
    self._trained = {
      variable.ref(): _Trained(
        spec,
        {
          name: slots_lib.CreateSlot(slot, variable)
          for name, slot in self.optimizer.SlotSpecs(spec).items()
        },
      )
      for spec, variable in zip(specs, tf.nest.flatten(variables), strict=True)
      if spec.trainable
    }
    for name in ('num_updates', 'num_skipped'):
      self._counters[name] = tf.Variable(
        tf.constant(0, tf.int64),
        trainable=False,
        name=f'{self.params.name}/{name}',
      )

  @property
  def slots(self) -> dict[str, tf.Variable]:
    """All state of the learner by its name in checkpoints.

    '<variable path>/<slot name>' for each slot, and the counters
    '<learner name>/num_updates' and '<learner name>/num_skipped'.
    """
    self._CheckInstantiated()
    slots = {
      f'{trained.spec.path}/{name}': slot
      for trained in self._trained.values()
      for name, slot in trained.slots.items()
    }
    for name, counter in self._counters.items():
      slots[f'{self.params.name}/{name}'] = counter
    return slots

  def _CheckInstantiated(self) -> None:
    if self._trained is None:
      raise RuntimeError(
        f'{self.params.name} has no slots yet: call InstantiateVariables('
        'variables, variable_specs) first'
      )

  # Updates.

  def LearningRate(self, global_step: Any) -> tf.Tensor:
    """The learning rate at a step, a float64 scalar."""
    return self.params.learning_rate * self.lr_schedule.Value(global_step)

  @tf.autograph.experimental.do_not_convert
  def Apply(
    self,
    variables: Any,
    gradients: Any,
    global_step: Any,
    finite: Any = True,
    partitions: Sequence[int] | None = None,
  ) -> NestedMap:
    """Makes one update. Works eagerly and in a tf.function.

    Args:
      variables: tree of tf.Variable, those of InstantiateVariables or some of
        them.
      gradients: tree of the same structure: a tensor (or tf.IndexedSlices) per
        variable, best on its device, or None for variables that are left alone.
      global_step: int64 scalar, how many steps came before.
      finite: bool scalar, whether all else that the step computed is finite.
      partitions: for each variable, in flat order, the index of the partition
        that it belongs to; None: all belong to one.

    Returns:
      A NestedMap of
        learning_rate: float64 scalar.
        grad_norm: float64 scalar, of all gradients before clipping, with L2's
          share. Gradients whose squares overflow their dtype count as not
          finite.
        partition_grad_norms: float64 [partitions], likewise of those of each
          partition; 0 for one without gradients.
        update_skipped: bool scalar, whether nothing was changed because
          grad_norm, or something else of the step, is not finite.
        num_skipped: int64 scalar, how many updates were skipped so far.

    Raises:
      ValueError: where no gradient is given, or one for an unknown variable.
    """
    p = self.params
    self._CheckInstantiated()
    if partitions is None:
      partitions = [0] * len(tf.nest.flatten(variables))
    updates = self._Updates(variables, gradients, partitions)
    groups: dict[str, list[_Update]] = {}
    for update in updates:
      groups.setdefault(update.variable.device, []).append(update)

    squares: dict[str, tf.Tensor] = {}
    for device, group in groups.items():
      with tf.device(device):
        group[:] = [self._Prepare(update) for update in group]
        squares[device] = tf.stack([_SquareSum(u.gradient) for u in group])
    order = [u.index for group in groups.values() for u in group]
    all_squares = _InOrder(list(squares.values()), order)
    norm = tf.sqrt(tf.reduce_sum(all_squares))
    partition_norms = tf.sqrt(
      tf.math.unsorted_segment_sum(
        all_squares, [u.partition for u in updates], max(partitions) + 1
      )
    )

    apply = tf.logical_and(tf.math.is_finite(norm), finite)
    learning_rate = self.LearningRate(global_step)
    num_updates = tf.identity(self._counters['num_updates'])
    clip = p.clip_gradient_norm_to_value
    scale = tf.minimum(clip / norm, 1.0) if clip else None
    for device, group in groups.items():

      def _ApplyGroup(group=group, squares=squares[device]):
        for i, u in enumerate(group):
          self.optimizer.Apply(
            u.variable,
            self._Clip(u.gradient, squares[i], scale),
            u.trained.slots,
            learning_rate,
            num_updates,
          )
        return tf.constant(True)

      # A cond per device keeps the updates of a device on that device.
      with tf.device(device):
        if p.skip_nonfinite:
          tf.cond(apply, _ApplyGroup, lambda: tf.constant(False))
        else:
          _ApplyGroup()

    if not p.skip_nonfinite:
      apply = tf.ones_like(apply)
    self._counters['num_updates'].assign_add(tf.cast(apply, tf.int64))
    self._counters['num_skipped'].assign_add(tf.cast(~apply, tf.int64))
    return NestedMap(
      learning_rate=learning_rate,
      grad_norm=norm,
      partition_grad_norms=partition_norms,
      update_skipped=~apply,
      num_skipped=tf.identity(self._counters['num_skipped']),
    )

  def _Updates(
    self, variables: Any, gradients: Any, partitions: Sequence[int]
  ) -> list[_Update]:
    """Pairs trained variables with gradients; None gradients are left out."""
    updates, unconnected = [], []
    for variable, gradient, partition in zip(
      tf.nest.flatten(variables),
      tf.nest.flatten(gradients),
      partitions,
      strict=True,
    ):
      trained = self._trained.get(variable.ref())
      if gradient is None:
        if trained is not None:
          unconnected.append(trained.spec.path)
        continue
      if trained is None:
        raise ValueError(
          f'{self.params.name}: a gradient for {variable.name}, which has no '
          'slots: it is not trainable, or was not given to '
          'InstantiateVariables()'
        )
      updates.append(
        _Update(len(updates), partition, variable, gradient, trained)
      )
    if not updates:
      raise ValueError(
        f'{self.params.name}: no variable has a gradient; does the loss depend '
        'on trainable weights?'
      )
    if unconnected:
      logging.warning(
        '%s: %d trainable variables have no gradient and stay as they are, '
        'among them %s',
        self.params.name,
        len(unconnected),
        ', '.join(unconnected[:5]),
      )
    return updates

  def _Prepare(self, update: _Update) -> _Update:
    """Makes the gradient dense and adds L2's."""
    gradient = tf.convert_to_tensor(update.gradient)
    l2 = self.params.l2_regularizer_weight
    if l2 and L2_COLLECTION in update.trained.spec.collections:
      gradient += tf.constant(l2, gradient.dtype) * update.variable
    return dataclasses.replace(update, gradient=gradient)

  def _Clip(
    self, gradient: tf.Tensor, square: tf.Tensor, scale: tf.Tensor | None
  ) -> tf.Tensor:
    """Scales a gradient down to the norm that is allowed.

    Args:
      gradient: of one variable.
      square: float64 scalar, its sum of squares.
      scale: float64 scalar, for all gradients alike; None: not clipped so.

    Returns:
      The gradient, clipped.
    """
    single = self.params.clip_gradient_single_norm_to_value
    if single:
      scale = tf.minimum(single / tf.sqrt(square), 1.0)
    if scale is None:
      return gradient
    return gradient * tf.cast(scale, gradient.dtype)


def _SquareSum(gradient: tf.Tensor) -> tf.Tensor:
  """Sum of squares, float64 scalar; half precision is added up in float32."""
  if gradient.dtype.size < 4:
    gradient = tf.cast(gradient, tf.float32)
  # l2_loss is half of the sum and makes no tensor of the squares.
  return tf.cast(tf.nn.l2_loss(gradient), tf.float64) * 2.0


def _InOrder(pieces: list[tf.Tensor], order: list[int]) -> tf.Tensor:
  """Joins vectors; `order` tells the place of each of their elements."""
  joined = tf.concat(pieces, axis=0)
  if order == sorted(order):
    return joined
  return tf.gather(joined, sorted(range(len(order)), key=order.__getitem__))
