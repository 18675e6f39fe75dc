"""The micro-batch loops: GPipe's schedule as two `tf.while_loop`s.

  partition 0   F0 F1 F2 F3            |             RB0 RB1 RB2 RB3
  partition 1      F0 F1 F2 F3         |      RB0 RB1 RB2 RB3
  partition 2                          |  FB0 FB1 FB2 FB3
                ---- forward loop ---- | ------ backward loop ------
  F: forward, B: backward, R: the forward re-materialized

The forward loop takes the micro-batches through all partitions but the last and
keeps what each partition received. The backward loop takes them through all
partitions from the last to the first, recomputes each from what it had received
(rematerialize.py), and sums the weights' gradients. The last partition runs in
the backward loop only: it needs no second forward pass.

One iteration is one micro-batch: its body simply chains the partitions, each
under its own `tf.device`. The runtime cuts the loops along those devices, and
since iterations depend on each other only through sums that live within one
device, partition 0 works on micro-batch i+1 while partition 1 works on i. Hence
the slanted picture. The graph's size does not depend on M.

Both loops run in ascending order of micro-batches, where the paper's Figure 2c
goes backward in descending order. The work is the same, and all sums over
micro-batches are then taken in one order: results are equal to the last bit for
every number of partitions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from lingvo_gpipe import metrics, nested_map, weights
from lingvo_gpipe.gpipe import micro_batch, rematerialize
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap
Nest = Any


@dataclasses.dataclass(frozen=True)
class StageData:
  """What one stage reads in every iteration, on its device.

  Attributes:
    theta: of its cells, read once, before the loops.
    variables: the VariableSpec of each flat leaf of theta.
    batch: the fields its cells ask for, [num_micro_batches, micro_batch, ...].
    spec: StageOutputs of TensorSpecs of one micro-batch.
  """

  theta: list[NestedMap]
  variables: list[weights.VariableSpec]
  batch: NestedMap
  spec: stage_lib.StageOutputs


def _Zeros(spec: Nest) -> Nest:
  """Sums to begin with; half precision would lose small addends."""
  return tf.nest.map_structure(
    lambda s: tf.zeros(s.shape, weights.AtLeastFloat32(s.dtype)), spec
  )


def _Add(sums: Nest, values: Nest) -> Nest:
  return tf.nest.map_structure(
    lambda s, v: s + tf.cast(v, s.dtype), sums, values
  )


def _Identity(nest: Nest) -> Nest:
  return tf.nest.map_structure(
    lambda x: None if x is None else tf.identity(x), nest
  )


def _ToDevice(device: str, nest: Nest) -> Nest:
  """One message for each tensor that crosses to `device`."""
  with tf.device(device):
    return _Identity(nest)


def _AfterForward(received: list[list[tf.TensorArray]]):
  """A context: after the forward loop of the partition that filled these.

  The identity waits for the one result of the loop; a control dependency on the
  loop itself would wait for all partitions.
  """
  return tf.control_dependencies(
    [tf.identity(array.flow) for arrays in received for array in arrays]
  )


def _Reports(outputs: stage_lib.StageOutputs) -> NestedMap:
  """What a forward pass reports, to be summed over micro-batches."""
  return NestedMap(statistics=outputs.statistics, aux_losses=outputs.aux_losses)


class Pipeline:
  """Stages with their data for one mini-batch.

  Args:
    stages: from the first to the last.
    data: of each stage.
    inputs: the first stage's inputs, [num_micro_batches, micro_batch, ...].
    num_micro_batches: M.
    global_step: see FPropContext.
  """

  def __init__(
    self,
    stages: list[stage_lib.Stage],
    data: list[StageData],
    inputs: Nest,
    num_micro_batches: int,
    global_step: Any,
  ):
    self._stages = stages
    self._data = data
    self._inputs = inputs
    self._num_micro_batches = num_micro_batches
    self._global_step = global_step
    # Micro-batches under way in a loop: K keep K partitions busy.
    self._parallel_iterations = max(2, len(stages))

  def CheckTrainable(self) -> None:
    """Raises ValueError where the last stage has no loss to minimise."""
    outputs = self._data[-1].spec.outputs
    loss = outputs.get('loss') if isinstance(outputs, dict) else None
    if not isinstance(loss, metrics.WeightedSum):
      raise ValueError(
        f'the last cell, {self._stages[-1].cells[-1].path}, returns no loss to '
        'train with: it must return a NestedMap whose "loss" is a '
        f'metrics.WeightedSum, but returns {outputs}'
      )

  def _While(self, body, state: NestedMap) -> NestedMap:
    """Runs body(i, state) for i = 0 .. M-1."""
    with tf.device(self._stages[0].device):
      start = tf.constant(0)
    unused_i, state = tf.while_loop(
      lambda i, unused_state: i < self._num_micro_batches,
      lambda i, state: (i + 1, body(i, state)),
      (start, state),
      parallel_iterations=self._parallel_iterations,
      maximum_iterations=self._num_micro_batches,
    )
    return state

  def _Batch(self, k: int, index: tf.Tensor) -> NestedMap:
    with tf.device(self._stages[k].device):
      return micro_batch.At(self._data[k].batch, index)

  def _FirstInputs(self, index: tf.Tensor) -> Nest:
    with tf.device(self._stages[0].device):
      return micro_batch.At(self._inputs, index)

  def _Run(self, k, inputs, index, do_eval) -> stage_lib.StageOutputs:
    return self._stages[k].FProp(
      self._data[k].theta,
      inputs,
      self._Batch(k, index),
      do_eval=do_eval,
      global_step=self._global_step,
      micro_batch_index=index,
    )

  def _Arrays(self, device: str, spec: Nest) -> list[tf.TensorArray]:
    """An array over micro-batches for each leaf of `spec`, on `device`."""
    leaves, unused_pack = micro_batch.Flatten(spec)
    with tf.device(device):
      return [
        tf.TensorArray(
          leaf.dtype,
          self._num_micro_batches,
          element_shape=leaf.shape,
          clear_after_read=False,
        )
        for leaf in leaves
      ]

  def _Write(self, device, arrays, index, nest) -> list[tf.TensorArray]:
    leaves, unused_pack = micro_batch.Flatten(nest)
    with tf.device(device):
      return [
        array.write(index, leaf)
        for array, leaf in zip(arrays, leaves, strict=True)
      ]

  def ForwardLoop(self) -> tuple[list[list[tf.TensorArray]], list[NestedMap]]:
    """Runs all partitions but the last and keeps what each one receives.

    Returns:
      (received, reports): the arrays of the inputs of partitions 1 .. K-1, and
      the summed statistics and auxiliary losses of partitions 0 .. K-2.
    """
    inner = range(len(self._stages) - 1)
    if not inner:
      return [], []
    state = NestedMap(received=[], reports=[])
    for k in inner:
      spec = self._data[k].spec
      state.received.append(
        self._Arrays(self._stages[k + 1].device, spec.outputs)
      )
      with tf.device(self._stages[k].device):
        state.reports.append(_Zeros(_Reports(spec)))

    def _Body(i: tf.Tensor, state: NestedMap) -> NestedMap:
      inputs = self._FirstInputs(i)
      new = NestedMap(received=[], reports=[])
      for k in inner:
        forward = self._Run(k, inputs, i, do_eval=False)
        with tf.device(self._stages[k].device):
          new.reports.append(_Add(state.reports[k], _Reports(forward)))
        next_device = self._stages[k + 1].device
        inputs = _ToDevice(next_device, forward.outputs)
        new.received.append(
          self._Write(next_device, state.received[k], i, inputs)
        )
      return new

    state = self._While(_Body, state)
    return state.received, state.reports

  def BackwardLoop(
    self, received: list[list[tf.TensorArray]]
  ) -> tuple[list[list[tf.Tensor]], NestedMap, NestedMap]:
    """Differentiates all partitions and sums over micro-batches.

    Args:
      received: from ForwardLoop.

    Returns:
      (gradients, metrics, reports): for each partition the sums of its weights'
      gradients in flat order, on its device; the last partition's summed
      WeightedSums; its summed statistics and auxiliary losses.
    """
    last = len(self._stages) - 1
    spec = self._data[last].spec
    state = NestedMap(gradients=[])
    for k, (stage, data) in enumerate(
      zip(self._stages, self._data, strict=True)
    ):
      with tf.device(stage.device), _AfterForward(received[k : k + 1]):
        state.gradients.append(
          [
            tf.zeros(variable.shape, variable.dtype)
            for variable in data.variables
            if variable.trainable
          ]
        )
    with tf.device(self._stages[last].device):
      state.metrics = _Zeros(Metrics(spec.outputs))
      state.reports = _Zeros(_Reports(spec))

    def _Body(i: tf.Tensor, state: NestedMap) -> NestedMap:
      new = NestedMap(gradients=[None] * (last + 1))
      output_gradients = None
      for k in reversed(range(last + 1)):
        with self._AfterPreviousMicroBatch(k, state.gradients[k]):
          inputs = self._Received(k, received, i)
        result = self._Differentiate(k, inputs, i, output_gradients)
        with tf.device(self._stages[k].device):
          new.gradients[k] = _Add(state.gradients[k], result.weights)
          if k == last:
            values = Metrics(result.forward.outputs)
            new.metrics = _Add(state.metrics, values)
            new.reports = _Add(state.reports, _Reports(result.forward))
        if k:
          output_gradients = _ToDevice(
            self._stages[k - 1].device, result.inputs
          )
      return new

    state = self._While(_Body, state)
    return state.gradients, state.metrics, state.reports

  def _AfterPreviousMicroBatch(self, k: int, gradients: list[tf.Tensor]):
    """Orders re-materializations: one micro-batch's activations at a time.

    Nothing else would keep partition k from recomputing later micro-batches
    while it waits for this one's gradient. The recomputation itself waits for
    no gradient from partition k + 1, so it still fills the bubble.

    Args:
      k: the partition.
      gradients: its sums, after the previous micro-batch.

    Returns:
      A context; what is read in it is read after those sums are there.
    """
    with tf.device(self._stages[k].device):
      return tf.control_dependencies([tf.identity(g) for g in gradients])

  def _Received(self, k, received, i) -> Nest:
    """What partition k received of micro-batch i in the forward pass."""
    with tf.device(self._stages[k].device):
      if k == 0:
        inputs = micro_batch.At(self._inputs, i)
      else:
        unused_leaves, pack = micro_batch.Flatten(
          self._data[k - 1].spec.outputs
        )
        inputs = pack([array.read(i) for array in received[k - 1]])
      return _Identity(inputs)

  def _Differentiate(
    self, k, inputs, i, output_gradients
  ) -> rematerialize.StageGradients:
    """The backward pass of partition k for micro-batch i."""
    return rematerialize.ForwardAndBackward(
      self._stages[k],
      self._data[k].theta,
      [variable.trainable for variable in self._data[k].variables],
      inputs,
      self._Batch(k, i),
      output_gradients,
      global_step=self._global_step,
      micro_batch_index=i,
    )

  def ForwardOnlyLoop(self) -> Nest:
    """Evaluates all partitions and keeps the last one's outputs.

    Returns:
      The last stage's outputs: WeightedSums summed over micro-batches, other
      tensors [batch, ...] in the order of the mini-batch.
    """
    device = self._stages[-1].device
    spec = self._data[-1].spec.outputs
    leaves, pack = micro_batch.Flatten(spec)
    is_sum = micro_batch.IsSum(spec)
    _CheckConcatenable(spec, leaves, is_sum)
    kept = [x for x, s in zip(leaves, is_sum, strict=True) if not s]
    summed = [x for x, s in zip(leaves, is_sum, strict=True) if s]
    with tf.device(device):
      state = NestedMap(kept=self._Arrays(device, kept), sums=_Zeros(summed))

    def _Body(i: tf.Tensor, state: NestedMap) -> NestedMap:
      nest = self._FirstInputs(i)
      for k, stage in enumerate(self._stages):
        nest = self._Run(
          k, _ToDevice(stage.device, nest), i, do_eval=True
        ).outputs
      flat, unused_pack = micro_batch.Flatten(nest)
      with tf.device(device):
        return NestedMap(
          kept=self._Write(
            device,
            state.kept,
            i,
            [x for x, s in zip(flat, is_sum, strict=True) if not s],
          ),
          sums=_Add(
            state.sums, [x for x, s in zip(flat, is_sum, strict=True) if s]
          ),
        )

    state = self._While(_Body, state)
    with tf.device(device):
      concatenated = iter([array.concat() for array in state.kept])
    sums = iter(state.sums)
    return pack([next(sums if s else concatenated) for s in is_sum])


def Metrics(outputs: Nest) -> dict[str, Any]:
  """The WeightedSums among the last stage's outputs.

  Raises:
    ValueError: where the outputs have no names.
  """
  if not isinstance(outputs, dict):
    raise ValueError(
      'the last cell must return a NestedMap of metrics.WeightedSum to be '
      f'trained or evaluated, not {micro_batch.Specs(outputs)}'
    )
  return NestedMap(
    {
      name: value
      for name, value in outputs.items()
      if all(micro_batch.IsSum(value)) and value is not None
    }
  )


def _CheckConcatenable(spec: Nest, leaves: list, is_sum: list[bool]) -> None:
  for leaf, summed in zip(leaves, is_sum, strict=True):
    if not summed and not leaf.shape.rank:
      raise ValueError(
        'the last cell returns a scalar, which can be neither concatenated '
        'nor summed over micro-batches; wrap it in metrics.WeightedSum '
        f'(outputs: {spec})'
      )
