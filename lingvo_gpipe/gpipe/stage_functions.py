"""A stage's passes under a policy of re-materialization.

What the forward pass keeps of a micro-batch beside what the stage received, and
what the backward pass therefore computes again:

  'none'       keeps all that the backward pass reads; computes nothing again
  'partition'  keeps nothing (paper, section 2.3); computes all cells again
  'cell'       keeps what each cell received; computes one cell at a time again,
               so that no more than one cell's residuals exist at once

A stage that runs backward right after forward keeps its residuals: with
'partition' and 'none' it computes nothing again, with 'cell' all but its last
cell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import micro_batch, ordering, segment
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap

# Gradients of what travels between stages: flat lists of tensors, by the name
# of the skip connection, and under None of the outputs themselves.
CarriedGradients = dict[str | None, list[tf.Tensor]]


@dataclasses.dataclass(frozen=True)
class Arguments:
  """What a stage reads for one micro-batch.

  Attributes:
    shared: see segment.Arguments.
    batch: fields of the micro-batch.
    received: from other stages.
    theta: the weights.
  """

  shared: list[Any]
  batch: NestedMap
  received: stage_lib.Carried | None
  theta: stage_lib.Theta


class ForwardResult(NamedTuple):
  """What a forward pass gives.

  Attributes:
    outputs: the StageOutputs.
    kept: tensors for the backward pass, of the specs `StageFunctions.kept`.
    residuals: of the last segment, where they were asked for.
  """

  outputs: stage_lib.StageOutputs
  kept: list[tf.Tensor]
  residuals: list[tf.Tensor] | None


class StageGradients(NamedTuple):
  """What a backward pass gives.

  Attributes:
    weights: (i, gradient by the i-th trainable leaf of theta in flat order, the
      shared ones last): a tensor or tf.IndexedSlices. A weight that several
      cells share may come several times, one without a gradient not at all.
    received: of what the stage received.
  """

  weights: list[tuple[int, tf.Tensor | tf.IndexedSlices]]
  received: CarriedGradients


class StageFunctions:
  """Forward and backward pass of a stage.

  Args:
    stage: the cells.
    received: Carried of TensorSpecs of one micro-batch.
    batch_spec: NestedMap of TensorSpecs of one micro-batch.
    policy: 'none', 'partition' or 'cell'.
    num_stages: K.
    shared: {name: TensorSpec} of other cells' weights, see stage.Theta.
    jit_compile: whether XLA compiles the functions.

  Attributes:
    stage: the cells.
    spec: StageOutputs of TensorSpecs.
    kept: TensorSpecs of what the forward pass keeps.
    backward_reads_received: whether the backward pass also needs what the
      forward pass received.
  """

  def __init__(
    self,
    stage: stage_lib.Stage,
    received: stage_lib.Carried,
    batch_spec: NestedMap,
    *,
    policy: str,
    num_stages: int,
    shared: dict[str, tf.TensorSpec] | None = None,
    jit_compile: bool = False,
  ):
    self.stage = stage
    self._policy = policy
    count = len(stage.cells)
    pieces = [(0, count)]
    if policy == 'cell':
      pieces = [(i, i + 1) for i in range(count)]
    self._pieces = pieces
    self._segments: list[segment.Segment] = []
    on_the_way = stage_lib.OnTheWay(received)
    for start, end in pieces:
      piece = stage.Slice(start, end)
      traced = segment.Segment(
        piece,
        on_the_way.Receive(piece),
        NestedMap({name: batch_spec[name] for name in piece.batch_fields}),
        shared=shared,
        is_first=stage.index == 0 and start == 0,
        is_last=stage.index == num_stages - 1 and end == count,
        jit_compile=jit_compile,
      )
      self._segments.append(traced)
      on_the_way.Send(traced.spec.carried)
    self.spec = stage_lib.StageOutputs.Join(
      on_the_way.carried, [piece.spec for piece in self._segments]
    )
    self._places = self._Places()
    self._arriving = set(received.skips)
    if policy == 'none':
      self.kept = self._segments[0].kept
    else:
      self.kept = [
        leaf
        for piece in self._segments[1:]
        for leaf in self._Border(piece.received)
      ]
    self.backward_reads_received = (
      policy != 'none' or self._segments[0].backward_reads_received
    )

  def _Places(self) -> list[list[int]]:
    """For each segment, which of the stage's gradients its own are."""
    places, count = [], 0
    for piece in self._segments:
      specs = [cell.VariableSpecs() for cell in piece.stage.cells]
      own = sum(spec.trainable for spec in tf.nest.flatten(specs))
      places.append(list(range(count, count + own)))
      count += own
    for piece, place in zip(self._segments, places, strict=True):
      for name in piece.stage.used_weights:
        place.append(count + self.stage.used_weights.index(name))
    return places

  @property
  def recomputes(self) -> bool:
    """Whether a backward pass later on has to compute something again."""
    return self._policy != 'none'

  # The forward pass.

  def Forward(
    self, arguments: Arguments, *, backward_follows: bool = False
  ) -> ForwardResult:
    """Runs all cells on one micro-batch.

    Args:
      arguments: of the micro-batch.
      backward_follows: whether the residuals are wanted at once.

    Returns:
      The ForwardResult.
    """
    on_the_way = stage_lib.OnTheWay(arguments.received)
    results, borders, residuals = [], [], None
    last = len(self._segments) - 1
    for i, piece in enumerate(self._segments):
      received = on_the_way.Receive(piece.stage)
      if i:
        borders += self._Border(received)
      piece_arguments = self._PieceArguments(i, arguments, received)
      if i == last and (backward_follows or self._policy == 'none'):
        result, residuals = piece.Keep(piece_arguments)
      else:
        result = piece.Forward(piece_arguments)
      on_the_way.Send(result.carried)
      results.append(result)
    return ForwardResult(
      stage_lib.StageOutputs.Join(on_the_way.carried, results),
      residuals if self._policy == 'none' else borders,
      residuals if backward_follows else None,
    )

  def _Border(self, received: stage_lib.Carried) -> list[Any]:
    """What a segment receives from this stage's other segments."""
    own = {k: v for k, v in received.skips.items() if k not in self._arriving}
    return micro_batch.Flatten(stage_lib.Carried(received.outputs, own))[0]

  def _PieceArguments(
    self, i: int, arguments: Arguments, received: stage_lib.Carried | None
  ) -> segment.Arguments:
    piece, (start, end) = self._segments[i], self._pieces[i]
    if received is None:
      leaves = [None] * len(micro_batch.Flatten(piece.received)[0])
    else:
      leaves = micro_batch.Flatten(received)[0]
    fields = NestedMap(
      {f: arguments.batch[f] for f in piece.stage.batch_fields}
    )
    return segment.Arguments(
      arguments.shared,
      micro_batch.Flatten(fields)[0],
      leaves,
      tf.nest.flatten(
        stage_lib.Theta(
          arguments.theta.cells[start:end],
          {n: arguments.theta.shared[n] for n in piece.stage.used_weights},
        )
      ),
    )

  # The backward pass.

  def Recompute(
    self, arguments: Arguments, kept: Sequence[tf.Tensor]
  ) -> list[tf.Tensor]:
    """Computes the last segment's residuals again; needs no gradient.

    Args:
      arguments: those of the forward pass; `received` may be None unless
        `backward_reads_received`.
      kept: by the forward pass.

    Returns:
      Residuals for Backward.
    """
    if self._policy == 'none':
      return list(kept)
    received = self._Received(arguments, kept)[-1]
    last = len(self._segments) - 1
    return self._segments[last].Recompute(
      self._PieceArguments(last, arguments, received)
    )

  def Backward(
    self,
    arguments: Arguments,
    kept: Sequence[tf.Tensor],
    residuals: Sequence[tf.Tensor],
    output_gradients: CarriedGradients,
  ) -> StageGradients:
    """The backward pass, from the last segment to the first.

    Args:
      arguments: as for Recompute.
      kept: by the forward pass.
      residuals: of the last segment.
      output_gradients: gradients of the objective by the floating leaves of
        what the stage sent; empty for the last stage.

    Returns:
      The StageGradients.
    """
    gradients = dict(output_gradients)
    weights = []
    all_received = self._Received(arguments, kept)
    last = len(self._segments) - 1
    for i in reversed(range(last + 1)):
      piece, received = self._segments[i], all_received[i]
      sent = [
        g
        for name, _ in _Ports(piece.spec.carried)
        for g in gradients.pop(name, [])
      ]
      if i < last:
        # Else all segments would be recomputed at once.
        received = ordering.After(sent, received)
        residuals = piece.Recompute(
          self._PieceArguments(i, arguments, received)
        )
      result = piece.Backward(
        self._PieceArguments(i, arguments, received), residuals, sent
      )
      weights += [
        (place, g)
        for place, g in zip(self._places[i], result.weights, strict=True)
        if g is not None
      ]
      rest = iter(result.received)
      if result.received:
        for name, count in _Ports(piece.received):
          gradients[name] = [next(rest) for _ in range(count)]
    return StageGradients(weights, gradients)

  def _Received(
    self, arguments: Arguments, kept: Sequence[tf.Tensor]
  ) -> list[stage_lib.Carried | None]:
    """What each segment received, from `kept` and what the stage received."""
    arriving = arguments.received
    if arriving is None:
      return [None]
    first = {k: arriving.skips[k] for k in self._segments[0].received.skips}
    received = [stage_lib.Carried(arriving.outputs, first)]
    rest = iter(kept)
    for piece in self._segments[1:]:
      spec = piece.received
      own = {k: v for k, v in spec.skips.items() if k not in self._arriving}
      border = stage_lib.Carried(spec.outputs, own)
      leaves, pack = micro_batch.Flatten(border)
      border = pack([next(rest) for _ in leaves])
      skips = dict(border.skips)
      for name in spec.skips:
        if name in self._arriving:
          skips[name] = arriving.skips[name]
      received.append(stage_lib.Carried(border.outputs, skips))
    return received


def TraceAll(
  stages: Sequence[stage_lib.Stage],
  on_the_way: stage_lib.OnTheWay,
  micro_spec: NestedMap,
  *,
  policies: Sequence[str],
  shared: dict[str, tf.TensorSpec],
  jit_compile: Sequence[bool],
) -> list[StageFunctions]:
  """The functions of all stages of a pipeline.

  Args:
    stages: from the first to the last.
    on_the_way: specs of what the first receives.
    micro_spec: NestedMap of TensorSpecs of one micro-batch.
    policies: of the stages.
    shared: see StageFunctions.
    jit_compile: of the stages.

  Returns:
    The StageFunctions.
  """
  functions = []
  for stage, policy, compiled in zip(
    stages, policies, jit_compile, strict=True
  ):
    traced = StageFunctions(
      stage,
      on_the_way.Receive(stage),
      micro_spec,
      policy=policy,
      num_stages=len(stages),
      shared=shared,
      jit_compile=compiled,
    )
    functions.append(traced)
    on_the_way.Send(traced.spec.carried)
  return functions


def _Ports(carried: stage_lib.Carried) -> list[tuple[str | None, int]]:
  """(name or None, number of floating leaves), in the order of Flatten."""
  nests = [(None, carried.outputs), *sorted(carried.skips.items())]
  return [
    (name, len(segment.Floats(micro_batch.Flatten(nest)[0])))
    for name, nest in nests
  ]
