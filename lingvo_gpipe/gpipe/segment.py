"""A segment: consecutive cells as a forward and a backward function.

The cells are traced once, on placeholders, and differentiated in the same
graph. Parts of that graph become functions of their own:

  Forward    inputs, weights -> outputs
  Keep       inputs, weights -> outputs, residuals
  Backward   residuals, output gradients -> gradients of weights and inputs
  Recompute  inputs, weights -> residuals

So whoever schedules them chooses: keep the residuals from the forward to the
backward pass, or compute them again right before it (re-materialization, paper
section 2.3). The functions hold no state; loops call them any number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import metrics, nested_map
from lingvo_gpipe.gpipe import micro_batch, residuals, subgraph
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap
Nest = Any


class Arguments(NamedTuple):
  """What a segment reads for one micro-batch: flat lists of tensors.

  Attributes:
    shared: global step and index of the micro-batch, int64 scalars.
    batch: leaves of the micro-batch's fields that its cells ask for.
    received: leaves of what it receives, a stage.Carried.
    theta: leaves of the weights, a stage.Theta.
  """

  shared: list[Any]
  batch: list[Any]
  received: list[Any]
  theta: list[Any]

  def Flat(self) -> list[Any]:
    return [*self.shared, *self.batch, *self.received, *self.theta]


class Gradients(NamedTuple):
  """What a backward pass gives for one micro-batch.

  Attributes:
    weights: for each trainable leaf of theta, in flat order, the shared ones
      last: a tensor, tf.IndexedSlices, or None for zero.
    received: for the floating leaves of what the segment received.
  """

  weights: list[tf.Tensor | tf.IndexedSlices | None]
  received: list[tf.Tensor]


def Floats(leaves: Sequence[Any]) -> list[Any]:
  """Those leaves that gradients flow through."""
  return [x for x in leaves if x.dtype.is_floating]


def Objective(forward: stage_lib.StageOutputs) -> tf.Tensor:
  """The last stage's scalar to differentiate: total loss of the micro-batch.

  Sums only: the division by the mini-batch's weight comes after the last
  micro-batch, when the weight is known.
  """
  total = forward.carried.outputs.loss.total
  for aux_loss in forward.aux_losses.values():
    total += tf.cast(aux_loss, total.dtype)
  return total


class Segment:
  """The functions of some cells of a stage.

  Args:
    stage: the cells.
    received: Carried of TensorSpecs of one micro-batch.
    batch_spec: NestedMap of TensorSpecs of the fields that they ask for.
    shared: {name: TensorSpec} of other cells' weights, see stage.Theta.
    is_first: what they receive is data and wants no gradient.
    is_last: their outputs hold the loss; the backward pass starts there.
    jit_compile: whether XLA compiles the functions.

  Attributes:
    stage: the cells.
    received: the specs of what they receive.
    is_first: whether no gradient leaves them.
    is_last: whether their outputs hold the loss.
    spec: StageOutputs of TensorSpecs.
    kept: TensorSpecs of the residuals.
    backward_reads_received: whether the backward pass needs what the forward
      pass received, beside the residuals.
  """

  def __init__(
    self,
    stage: stage_lib.Stage,
    received: stage_lib.Carried,
    batch_spec: NestedMap,
    *,
    shared: dict[str, tf.TensorSpec] | None = None,
    is_first: bool = False,
    is_last: bool = False,
    jit_compile: bool = False,
  ):
    self.stage = stage
    self.received = received
    self._batch_spec = batch_spec
    self._shared = shared or {}
    self.is_first = is_first
    self.is_last = is_last
    self._jit_compile = jit_compile
    # Lifted out of whatever graph is being built: functions outlive it.
    with tf.init_scope():
      traced = tf.compat.v1.wrap_function(self._Trace, [])
    # Keeps the graph alive, whose tensors are looked at later on.
    self._traced = traced
    self._subgraphs = subgraph.Subgraphs(traced.graph)
    self._functions: dict[str, Callable] = {}

  # Tracing.

  def _Trace(self) -> None:
    stage = self.stage
    placeholder = tf.compat.v1.placeholder
    with tf.device(stage.device):
      step, index = placeholder(tf.int64, []), placeholder(tf.int64, [])
      batch = micro_batch.Placeholders(self._batch_spec)
      received = micro_batch.Placeholders(self.received)
      theta = stage.AbstractTheta(self._shared)
    self._arguments = Arguments(
      [step, index],
      micro_batch.Flatten(batch)[0],
      micro_batch.Flatten(received)[0],
      tf.nest.flatten(theta),
    )
    forward = stage.FProp(
      theta,
      received,
      batch,
      do_eval=False,
      global_step=step,
      micro_batch_index=index,
    )
    self.spec = stage_lib.StageOutputs(
      *(micro_batch.Specs(part) for part in forward)
    )
    if self.is_last:
      _CheckTrainable(stage, forward.carried.outputs)
    forward_ops = tf.compat.v1.get_default_graph().get_operations()
    leaves, pack = micro_batch.Flatten(forward)
    with tf.device(stage.device):
      with tf.control_dependencies(_Effects(forward_ops)):
        # An output may be an input, or come twice; identities do not.
        self._outputs = [tf.identity(x) for x in leaves]
    self._Differentiate(pack(self._outputs))
    self._residuals = residuals.Split(
      self._FlatGradients(),
      forward=forward_ops,
      feeds=[*self._arguments.Flat(), *self._output_gradients],
      varying=self._arguments.Flat()[: -len(self._arguments.theta) or None],
    )
    read = {x.ref() for x in self._residuals.feeds}
    self.backward_reads_received = any(
      x.ref() in read for x in self._arguments.received
    )
    self.kept = micro_batch.Specs(self._residuals.kept)

  def _Differentiate(self, forward: stage_lib.StageOutputs) -> None:
    """Adds the gradient to the graph."""
    specs = tf.nest.flatten([c.VariableSpecs() for c in self.stage.cells])
    trainable = [spec.trainable for spec in specs]
    trainable += [True] * len(self.stage.used_weights)
    weights = [
      w for w, t in zip(self._arguments.theta, trainable, strict=True) if t
    ]
    received = [] if self.is_first else Floats(self._arguments.received)
    with tf.device(self.stage.device):
      if self.is_last:
        self._output_gradients, targets = [], [Objective(forward)]
      else:
        targets = Floats(micro_batch.Flatten(forward.carried)[0])
        self._output_gradients = [
          tf.compat.v1.placeholder(y.dtype, y.shape) for y in targets
        ]
        targets = targets + list(forward.aux_losses.values())
      # The objective has slope 1 in auxiliary losses: see Objective.
      slopes = self._output_gradients + [
        tf.ones_like(y) for y in targets[len(self._output_gradients) :]
      ]
      sources = [*weights, *received]
      gradients = [None] * len(sources)
      if targets and sources:
        gradients = tf.gradients(targets, sources, slopes)
      self._gradients = Gradients(
        gradients[: len(weights)],
        [
          tf.zeros(x.shape, x.dtype) if g is None else tf.convert_to_tensor(g)
          for x, g in zip(received, gradients[len(weights) :], strict=True)
        ],
      )

  def _FlatGradients(self) -> list[tf.Tensor]:
    flat = []
    for g in self._gradients.weights:
      if isinstance(g, tf.IndexedSlices):
        flat += [g.values, g.indices]
      elif g is not None:
        flat.append(g)
    return flat + self._gradients.received

  def _PackGradients(self, flat: Sequence[tf.Tensor]) -> Gradients:
    rest, weights = iter(flat), []
    for g in self._gradients.weights:
      if isinstance(g, tf.IndexedSlices):
        weights.append(tf.IndexedSlices(next(rest), next(rest)))
      else:
        weights.append(None if g is None else next(rest))
    return Gradients(weights, list(rest))

  # Calling.

  def _Call(
    self,
    name: str,
    fetches: list[tf.Tensor],
    feeds: list[tf.Tensor],
    values: list[Any],
  ) -> list[tf.Tensor]:
    """Calls the part of the graph between `feeds` and `fetches`."""
    if name not in self._functions:
      with tf.init_scope():
        function, chosen = self._subgraphs.Function(fetches, feeds)
        if self._jit_compile:
          function = tf.function(function, jit_compile=True, autograph=False)
      self._functions[name] = (function, chosen)
    function, chosen = self._functions[name]
    with tf.device(self.stage.device):
      return function(*[values[i] for i in chosen])

  def _Outputs(self, flat: Sequence[tf.Tensor]) -> stage_lib.StageOutputs:
    unused_leaves, pack = micro_batch.Flatten(self.spec)
    return pack(list(flat))

  def Forward(self, arguments: Arguments) -> stage_lib.StageOutputs:
    """The forward pass."""
    feeds = self._arguments.Flat()
    return self._Outputs(
      self._Call('forward', self._outputs, feeds, arguments.Flat())
    )

  def Keep(
    self, arguments: Arguments
  ) -> tuple[stage_lib.StageOutputs, list[tf.Tensor]]:
    """The forward pass, and the residuals for the backward pass."""
    fetches = [*self._outputs, *self._residuals.kept]
    flat = self._Call('keep', fetches, self._arguments.Flat(), arguments.Flat())
    count = len(self._outputs)
    return self._Outputs(flat[:count]), list(flat[count:])

  def Recompute(self, arguments: Arguments) -> list[tf.Tensor]:
    """The residuals alone."""
    feeds = self._arguments.Flat()
    return list(
      self._Call('recompute', self._residuals.kept, feeds, arguments.Flat())
    )

  def Backward(
    self,
    arguments: Arguments,
    kept: Sequence[tf.Tensor],
    output_gradients: Sequence[tf.Tensor],
  ) -> Gradients:
    """The backward pass.

    Args:
      arguments: of the forward pass.
      kept: the residuals.
      output_gradients: gradients of the objective by the floating leaves of
        what the segment sent; none for the last segment.

    Returns:
      The Gradients.
    """
    constants = self._residuals.constants
    feeds = [
      *self._arguments.Flat(),
      *self._residuals.kept,
      *(tensor for tensor, unused_value in constants),
      *self._output_gradients,
    ]
    values = [
      *arguments.Flat(),
      *kept,
      *(value for unused_tensor, value in constants),
      *output_gradients,
    ]
    return self._PackGradients(
      self._Call('backward', self._FlatGradients(), feeds, values)
    )


def _CheckTrainable(stage: stage_lib.Stage, outputs: Nest) -> None:
  loss = outputs.get('loss') if isinstance(outputs, dict) else None
  if not isinstance(loss, metrics.WeightedSum):
    raise ValueError(
      f'the last cell, {stage.cells[-1].path}, returns no loss to train with: '
      'it must return a NestedMap whose "loss" is a metrics.WeightedSum, but '
      f'returns {micro_batch.Specs(outputs)}'
    )


def _Effects(operations: Sequence[tf.Operation]) -> list[Any]:
  """Assertions and prints: nothing else would keep them in a function."""
  effects = []
  for op in operations:
    if op._is_stateful:  # noqa: SLF001
      # Waiting for a conditional (an assertion is one) waits for its results
      # only if they are asked for.
      effects += [tf.identity(x) for x in op.outputs] or [op]
  return effects
