"""What travels between the stages of the micro-batch loop, and where it waits.

Along an edge go the outputs of a stage, or a skip connection, and back go their
gradients. What a stage sends in a row is a loop variable on the receiver's
device, so it crosses once; in the next row the receiver puts it into a ring of
as many slots as the table needs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import (
  micro_batch,
  ordering,
  ring,
  segment,
  stage_functions,
)
from lingvo_gpipe.gpipe import stage as stage_lib
from lingvo_gpipe.gpipe.schedules import loop_table

NestedMap = nested_map.NestedMap
Nest = Any


class _Edge(NamedTuple):
  """From stage to stage.

  Attributes:
    name: of a skip connection; None: the outputs.
    source: the stage that sends activations.
    target: the stage that receives them.
    spec: nest of TensorSpecs of a micro-batch.
    activations: their ring, on the target's device.
    gradients: the ring of what comes back, on the source's device.
  """

  name: str | None
  source: int
  target: int
  spec: Nest
  activations: ring.Ring
  gradients: ring.Ring


class Edges:
  """All edges of a loop, whose state has four lists, an item for each:

    sending: leaves of the activations that left in the row, if any.
    activations: TensorArrays of their ring.
    returning: gradients that left in the row.
    gradients: TensorArrays of their ring.

  Args:
    functions: of the stages.
    table: who does what when.
  """

  def __init__(
    self,
    functions: Sequence[stage_functions.StageFunctions],
    table: loop_table.LoopTable,
  ):
    self._devices = [f.stage.device for f in functions]
    self._edges = [
      self._MakeEdge(functions, table, *ends) for ends in _Ends(functions)
    ]

  def _MakeEdge(
    self,
    functions: Sequence[stage_functions.StageFunctions],
    table: loop_table.LoopTable,
    name: str | None,
    source: int,
    target: int,
  ) -> _Edge:
    spec = functions[source].spec.carried.Part(name)
    leaves = micro_batch.Flatten(spec)[0]
    until_backward = functions[target].backward_reads_received
    return _Edge(
      name,
      source,
      target,
      spec,
      activations=ring.Ring(
        self._devices[target],
        table.Activations(source, target, until_backward),
        leaves,
      ),
      gradients=ring.Ring(
        self._devices[source],
        table.Gradients(source, target),
        segment.Floats(leaves),
      ),
    )

  def From(self, k: int) -> list[int]:
    """Indices of the edges that begin at stage k."""
    return [e for e, edge in enumerate(self._edges) if edge.source == k]

  def To(self, k: int) -> list[int]:
    """Indices of the edges that end at stage k."""
    return [e for e, edge in enumerate(self._edges) if edge.target == k]

  def Start(self, state: NestedMap) -> None:
    """Adds the four lists to a state."""
    state.activations = [edge.activations.Create() for edge in self._edges]
    state.gradients = [edge.gradients.Create() for edge in self._edges]
    state.sending, state.returning = [], []
    for edge in self._edges:
      with tf.device(self._devices[edge.target]):
        state.sending.append([ring.Nothing(x) for x in edge.activations.specs])
      with tf.device(self._devices[edge.source]):
        state.returning.append([ring.Nothing(x) for x in edge.gradients.specs])

  def Receive(self, state: NestedMap) -> None:
    """Puts what was sent in the row before into rings; nothing is sent yet."""
    for e, edge in enumerate(self._edges):
      state.activations[e] = edge.activations.Receive(
        state.activations[e],
        state.row[self._devices[edge.target]],
        state.sending[e],
      )
      state.gradients[e] = edge.gradients.Receive(
        state.gradients[e],
        state.row[self._devices[edge.source]],
        state.returning[e],
      )
      # Each on the device that sends it, or it would cross twice.
      with tf.device(self._devices[edge.source]):
        state.sending[e] = [ring.Empty(x) for x in edge.activations.specs]
      with tf.device(self._devices[edge.target]):
        state.returning[e] = [ring.Empty(x) for x in edge.gradients.specs]

  def Cross(self, state: NestedMap) -> None:
    """Brings what was sent to the devices that receive it."""
    for e, edge in enumerate(self._edges):
      with tf.device(self._devices[edge.target]):
        state.sending[e] = ordering.Identity(state.sending[e])
      with tf.device(self._devices[edge.source]):
        state.returning[e] = ordering.Identity(state.returning[e])

  def Received(
    self,
    k: int,
    index: tf.Tensor,
    activations: list[list[tf.TensorArray]],
    first_inputs: Nest,
  ) -> stage_lib.Carried:
    """What stage k receives for a micro-batch.

    Args:
      k: the stage.
      index: of the micro-batch.
      activations: of the state.
      first_inputs: of stage 0, [num_micro_batches, micro_batch, ...].

    Returns:
      Outputs of the stage before and skip connections.
    """
    outputs = micro_batch.At(first_inputs, index) if k == 0 else None
    skips = {}
    for e in self.To(k):
      edge = self._edges[e]
      unused_leaves, pack = micro_batch.Flatten(edge.spec)
      nest = pack(edge.activations.Read(activations[e], index))
      if edge.name is None:
        outputs = nest
      else:
        skips[edge.name] = nest
    return stage_lib.Carried(outputs, skips)

  def Gradients(
    self, k: int, index: tf.Tensor, state: NestedMap
  ) -> dict[str | None, list[tf.Tensor]]:
    """{edge: flat gradients} of what stage k has sent of a micro-batch."""
    return {
      self._edges[e].name: self._edges[e].gradients.Read(
        state.gradients[e], index
      )
      for e in self.From(k)
    }

  def Send(
    self,
    k: int,
    carried: stage_lib.Carried,
    after: tf.Tensor,
    state: NestedMap,
  ) -> None:
    """Sends what stage k passes on, once `after` is there."""
    for e in self.From(k):
      leaves = micro_batch.Flatten(carried.Part(self._edges[e].name))[0]
      state.sending[e] = ordering.After([after], leaves)

  def Return(
    self,
    k: int,
    received: dict[str | None, list[tf.Tensor]],
    clock: Any,
    state: NestedMap,
  ) -> tf.Tensor:
    """Sends the gradients of what stage k received.

    Args:
      k: the stage.
      received: {edge: flat gradients}.
      clock: called with them, returns a tensor; they leave once it is there.
      state: of the loop.

    Returns:
      That tensor.
    """
    into = {e: received[self._edges[e].name] for e in self.To(k)}
    left = clock([x for flat in into.values() for x in flat])
    for e, flat in into.items():
      state.returning[e] = ordering.After([left], flat)
    return left


def _Ends(
  functions: Sequence[stage_functions.StageFunctions],
) -> list[tuple[str | None, int, int]]:
  """(name, source, target) of everything that travels between stages."""
  ends = [(None, k, k + 1) for k in range(len(functions) - 1)]
  source = {}
  for k, stage in enumerate(functions):
    ends += [(name, source[name], k) for name in stage.stage.pops]
    for name in stage.stage.stashes:
      source[name] = k
  return ends
