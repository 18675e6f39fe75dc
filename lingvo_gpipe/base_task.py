"""BaseTask: what is trained, on which data, and how.

A task joins the params of an input, of a GPipe network and of a learner. It is
the root of the tree of layers, so the paths of its variables begin with its
name. Most tasks need no class of their own: a model is BaseTask.Params() with
`net`, `input` and `train` set.

  task = params.Instantiate()           # no memory
  task.Plan(batch_spec, devices)        # cuts the network
  task.InstantiateVariables()           # weights, slots, averages
  task.TrainStep(batch, global_step)    # usually inside a tf.function
  task.EvalStep(batch)                  # or EvalOutputs, with predictions
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, hyperparams, nested_map
from lingvo_gpipe.gpipe import (
  device_names,
  gpipe,
  loop_data,
  micro_batch,
  replica_owners,
)
from lingvo_gpipe.gpipe.planning import plan as plan_lib
from lingvo_gpipe.train import init_from_checkpoint, schedules, train_params

NestedMap = nested_map.NestedMap

# What steps are logged with besides their metrics; see jobs/recorder.py.
_OTHER_NAMES = frozenset(
  (
    'step',
    'skipped',
    'learning_rate',
    'grad_norm',
    'examples_per_second',
    'tokens_per_second',
    'input_wait',
    'bubble',
    'lr',
  )
)


def _NearFirstPartition(method: Callable[..., Any]) -> Callable[..., Any]:
  """Keeps what belongs to no partition away from the client of a cluster.

  A scalar, or the condition of a loop, that is computed there costs messages
  to and fro in every iteration.
  """

  @functools.wraps(method)
  def _Method(self, *args, **kwargs):
    with tf.device(device_names.HostOf(self.net.plan.devices[0])):
      return method(self, *args, **kwargs)

  return _Method


class BaseTask(base_layer.BaseLayer):
  """A GPipe network with its learner."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('model', '', 'Name and source of the model; the registry sets it.')
    p.Define('input', None, 'Params of the input generator.')
    p.Define('net', gpipe.GPipe.Params().Set(name='net'), 'The network.')
    p.Define('train', train_params.TrainParams(), 'How it is trained.')
    p.Define('eval', train_params.EvalParams(), 'When it is evaluated.')
    p.Define(
      'loss_unit',
      'examples',
      'What the weights of the loss count, such as "tokens"; progress tells '
      'how many there are a second.',
    )
    p.Define(
      'decoder',
      None,
      'Params of a BaseDecoder, for networks that write something; None: there '
      'is nothing to decode.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name in ('max_steps', 'log_interval_steps', 'max_nonfinite_steps'):
      if p.train.Get(name) < 1:
        raise ValueError(f'train.{name}={p.train.Get(name)} must be 1 or more')
    self.CreateChild('net', p.net)
    learner = p.train.learner.Copy()
    if learner.lr_schedule is not None:
      schedules.FillDecaySteps(learner.lr_schedule, p.train.max_steps)
    self.learner = learner.Instantiate()
    self.ema = p.train.ema.Instantiate()
    self.init_from = p.train.init_from.Instantiate()

  def Plan(
    self, batch_spec: NestedMap, devices: Sequence[str] | None = None
  ) -> plan_lib.PipelinePlan:
    """Cuts the network into partitions; see GPipe.Plan."""
    return self.net.Plan(
      batch_spec,
      devices=devices and list(devices),
      state_bytes=self._StateBytes(),
    )

  def _StateBytes(self) -> list[int]:
    """Bytes that training adds, on a device, to the variables of each cell."""
    added = collections.Counter()
    for path, spec in self.StateSpecs().items():
      added[path.rpartition('/')[0]] += spec.num_bytes
    return [
      replica_owners.LargestShare(
        [added[v.path] for v in tf.nest.flatten(cell.VariableSpecs())],
        self.net.params.num_replicas,
      )
      for cell in self.net.cells
    ]

  def StateSpecs(self) -> dict[str, Any]:
    """The specs of what the optimizer and averages add to the variables."""
    specs = self.VariableSpecs()
    return {**self.learner.SlotSpecs(specs), **self.ema.SlotSpecs(specs)}

  @_NearFirstPartition
  def InstantiateVariables(self) -> None:
    """Creates weights, slots and averages, each on its partition's device."""
    super().InstantiateVariables()
    specs = self.VariableSpecs()
    self.learner.InstantiateVariables(self.vars, specs)
    self.ema.InstantiateVariables(self.vars, specs)

  @property
  def weights(self) -> dict[str, tf.Variable]:
    """The variables of the network by path, without what training adds."""
    specs = tf.nest.flatten(self.VariableSpecs())
    return {
      spec.path: variable
      for spec, variable in zip(specs, tf.nest.flatten(self.vars), strict=True)
    }

  @property
  def variables_for_checkpoint(self) -> dict[str, tf.Variable]:
    """All that changes in training, by path; nothing in it depends on K."""
    return {**self.weights, **self.learner.slots, **self.ema.slots}

  def InitFrom(self, plan: init_from_checkpoint.InitPlan) -> None:
    """Sets weights, and their averages, to those of another checkpoint.

    Args:
      plan: of `self.init_from.Plan(self.VariableSpecs())`.

    Raises:
      CheckpointError: where a file is damaged.
    """
    plan.Apply(self.weights)
    self.ema.Reset(self.vars)

  @tf.autograph.experimental.do_not_convert
  @_NearFirstPartition
  def TrainStep(self, batch: NestedMap, global_step: Any) -> NestedMap:
    """One update from one mini-batch.

    Where the gradients are not finite, nothing changes: neither weights and
    slots nor moving moments and averages.

    Args:
      batch: NestedMap of tensors [batch, ...].
      global_step: int64 scalar, how many steps came before.

    Returns:
      A NestedMap of
        loss: scalar, the objective, auxiliary losses included.
        metrics: NestedMap of WeightedSums of the mini-batch.
        cell_metrics: {name: WeightedSum} of what cells report by AddMetric.
        aux_losses: {name: scalar}, their shares of the objective.
        learning_rate: scalar.
        grad_norm: scalar, of all gradients before clipping.
        partition_grad_norms: [K], likewise of each partition's; shared weights
          are their lender's.
        update_skipped: bool scalar.
        times: when each partition ran, see loop_data.LoopResult.

    Raises:
      ValueError: for a metric called like something else that steps are logged
        with.
    """
    # Read once: a loop would ask the client for it in every iteration.
    global_step = tf.identity(global_step)
    result = self.net.ComputeGradients(batch, global_step)
    self._CheckMetricNames(result)
    update = self.learner.Apply(
      self.net.vars,
      result.grads,
      global_step,
      # Statistics can overflow where gradients, divided by them, do not.
      finite=_AllFinite(result.statistics),
      partitions=[
        k
        for k, stage in enumerate(self.net.plan.stages)
        for _ in tf.nest.flatten(self.net.vars.cells[stage.start : stage.end])
      ],
    )

    def _ApplyStatistics():
      self.net.ApplyStatistics(result.statistics)
      return tf.constant(True)

    tf.cond(update.update_skipped, lambda: tf.constant(False), _ApplyStatistics)
    if self.ema.enabled:

      def _UpdateAverages():
        self.ema.Update(self.vars, global_step - update.num_skipped)
        return tf.constant(True)

      tf.cond(
        update.update_skipped, lambda: tf.constant(False), _UpdateAverages
      )
    return NestedMap(
      loss=result.loss,
      metrics=result.metrics,
      cell_metrics=result.cell_metrics,
      times=result.times,
      aux_losses=result.aux_losses,
      learning_rate=update.learning_rate,
      grad_norm=update.grad_norm,
      partition_grad_norms=update.partition_grad_norms,
      update_skipped=update.update_skipped,
    )

  def _CheckMetricNames(self, result: NestedMap) -> None:
    """Names in logs and summaries are unique, or one hides the other.

    What cells report is called by their paths, which metrics cannot be: names
    of metrics are identifiers.
    """
    taken = sorted(_OTHER_NAMES & set(result.metrics))
    if taken:
      cell = self.net.cells[-1]
      raise ValueError(
        f'{cell.path} ({type(cell).__name__}) returns metrics called '
        f'{", ".join(taken)}, as something else is that every step is logged '
        'with; choose other names'
      )

  @tf.autograph.experimental.do_not_convert
  def EvalStep(self, batch: NestedMap) -> NestedMap:
    """The metrics of one batch: no dropout, moving moments, averaged weights.

    Args:
      batch: NestedMap of tensors [batch, ...]; examples that only fill up the
        last batch have weight 0.

    Returns:
      NestedMap of WeightedSums.
    """
    return self.EvalOutputs(batch).metrics

  def EvalNames(self) -> list[str]:
    """What checkpoints call the weights that evaluation goes by.

    Returns:
      Of each variable of the network, in the flat order of VariableSpecs(), the
      path of its average, or its own where it has none.
    """
    return [
      next(iter(self.ema.SlotSpecs(spec)), spec.path)
      for spec in tf.nest.flatten(self.net.VariableSpecs())
    ]

  def EvalTheta(self) -> NestedMap:
    """The network's weights, averaged ones where there are averages."""
    return self.net.ThetaFrom(self.ema.Averages(self.net.vars))

  @tf.autograph.experimental.do_not_convert
  @_NearFirstPartition
  def EvalOutputs(self, batch: NestedMap) -> NestedMap:
    """What EvalStep returns, and what the last cell says of each example.

    Args:
      batch: as of EvalStep.

    Returns:
      A NestedMap of
        metrics: NestedMap of WeightedSums.
        outputs: NestedMap of the last cell's other outputs, such as `logits`:
          tensors [batch, ...] in the order of the batch, whatever K and M are.
    """
    with fprop_context.FPropContext(do_eval=True):
      outputs = self.net.FProp(self.EvalTheta(), batch)
    return NestedMap(
      metrics=loop_data.Metrics(outputs),
      outputs=NestedMap(
        {
          name: value
          for name, value in outputs.items()
          if value is not None and not any(micro_batch.IsSum(value))
        }
      ),
    )


def _AllFinite(statistics: dict[str, NestedMap]) -> tf.Tensor:
  """Whether all floating point numbers are finite; bool scalar."""
  finite = tf.constant(True)
  for value in tf.nest.flatten(statistics):
    if value.dtype.is_floating:
      with tf.device(value.device):
        own = tf.reduce_all(tf.math.is_finite(value))
      finite = tf.logical_and(finite, own)
  return finite
