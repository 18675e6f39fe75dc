"""What a cell costs, counted by tracing it on abstract inputs.

A cell is traced once, forward and backward, on placeholders: nothing is run and
no weight is allocated, so a model of billions of parameters is counted in
seconds. All counts are of one micro-batch in training mode. Cells that differ
in nothing but their names are traced once for all.

A layer that knows better than the count (a loop whose length only it knows, a
custom kernel) defines

  def Cost(self, inputs_spec) -> dict[str, int]:
    return {'forward_flops': ..., 'backward_flops': ...}

with any of the fields forward_flops, backward_flops and activation_bytes; they
replace the counted ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, metrics, nested_map
from lingvo_gpipe.gpipe import micro_batch
from lingvo_gpipe.gpipe.planning import activations, flops

Nest = Any

_OVERRIDES = ('forward_flops', 'backward_flops', 'activation_bytes')


@dataclasses.dataclass(frozen=True)
class CellCost:
  """The cost of a cell for one micro-batch.

  Attributes:
    name: of the cell.
    params: trainable parameters.
    param_bytes: bytes of all its variables, the non-trainable ones included.
    gradient_bytes: bytes of the sums of its gradients; of other cells' weights
      that it uses, a copy on its device and the gradient.
    batch_fields: names of the batch's fields that it asks for.
    forward_flops: of the forward pass.
    backward_flops: of the backward pass, without any recomputation.
    activation_bytes: of what the backward pass reads of the forward pass, the
      inputs included. Outputs are not: they are the next cell's inputs.
    input_bytes: of the inputs.
    output_bytes: of the outputs, what crosses to another device after this
      cell. The gradients that come back are as large, where outputs are float.
    output_spec: nest of TensorSpecs of the outputs.
    stashed: {name: nest of TensorSpecs} of the skip connections that begin in
      the cell.
  """

  name: str
  params: int
  param_bytes: int
  forward_flops: int
  backward_flops: int
  activation_bytes: int
  input_bytes: int
  output_bytes: int
  output_spec: Nest = dataclasses.field(compare=False, repr=False)
  stashed: dict[str, Nest] = dataclasses.field(
    default_factory=dict, compare=False, repr=False
  )
  gradient_bytes: int = 0
  batch_fields: tuple[str, ...] = ()


def CountCells(
  cells: Sequence[base_layer.BaseLayer],
  inputs_spec: Nest,
  batch_spec: nested_map.NestedMap | None = None,
  shared: dict[str, tf.TensorSpec] | None = None,
) -> list[CellCost]:
  """Counts cells that follow one another.

  Args:
    cells: the layers, each taking what the one before it returns.
    inputs_spec: nest of TensorSpecs (or None) that cell 0 receives, of one
      micro-batch with static shapes.
    batch_spec: the micro-batch's fields, for cells with BATCH_FIELDS.
    shared: {name: TensorSpec} of weights that cells use of each other.

  Returns:
    The cost of each.

  Raises:
    ValueError: where a cell cannot be traced on its inputs; caused by the
      cell's own error, names the cell and where the inputs come from.
  """
  costs: list[CellCost] = []
  cache: dict[Any, CellCost] = {}
  stashed: dict[str, Nest] = {}
  for index, cell in enumerate(cells):
    popped = {n: stashed.pop(n) for n in cell.Pops() if n in stashed}
    key = (CacheKey(cell, (inputs_spec, popped), batch_spec), index > 0)
    if key not in cache:
      source = f'what cell {index - 1} ({cells[index - 1].path}) returns'
      cache[key], _ = CountCell(
        cell,
        inputs_spec,
        batch_spec,
        index=index,
        source=source if index else 'the inputs of the pipeline',
        popped=popped,
        shared=shared,
      )
    costs.append(dataclasses.replace(cache[key], name=cell.params.name))
    inputs_spec = costs[-1].output_spec
    stashed.update(costs[-1].stashed)
  return costs


def CountCell(
  cell: base_layer.BaseLayer,
  inputs_spec: Nest,
  batch_spec: nested_map.NestedMap | None = None,
  *,
  index: int = 0,
  source: str = 'the given inputs',
  popped: dict[str, Nest] | None = None,
  shared: dict[str, tf.TensorSpec] | None = None,
) -> tuple[CellCost, Nest]:
  """Counts one cell.

  Args:
    cell: the layer.
    inputs_spec: nest of TensorSpecs, or None, of one micro-batch.
    batch_spec: the micro-batch's fields, for a cell with BATCH_FIELDS.
    index: in the list of cells. Cell 0 computes no gradient of its inputs: they
      are data.
    source: of the inputs, for error messages.
    popped: {name: nest of TensorSpecs} of skip connections that end here.
    shared: {name: TensorSpec} of other cells' weights.

  Returns:
    (cost, spec of the outputs).

  Raises:
    ValueError: where the cell cannot be traced; caused by the cell's own error.
  """
  shared = shared or {}
  try:
    trace = _Trace(
      cell,
      inputs_spec,
      batch_spec,
      with_inputs=index > 0,
      popped=popped or {},
      shared=shared,
    )
    overrides = _Overrides(cell, inputs_spec)
  except Exception as e:
    error = ValueError(
      f'cell {index} ({cell.path}, {type(cell).__name__}) fails on {source}, '
      f'{inputs_spec}: {type(e).__name__}: {e}'
    )
    # The note marks an error of a cell's own code; see user_error.py.
    error.add_note("The cell's own error comes first in this traceback.")
    raise error from e
  variables = tf.nest.flatten(cell.VariableSpecs())
  counted = CellCost(
    name=cell.params.name,
    params=sum(v.size for v in variables if v.trainable),
    param_bytes=sum(v.num_bytes for v in variables),
    gradient_bytes=sum(v.num_bytes for v in variables if v.trainable)
    + 2 * _Bytes(shared[n] for n in cell.UsedWeights() if n in shared),
    batch_fields=tuple(cell.BATCH_FIELDS),
    input_bytes=_Bytes(_Tensors(inputs_spec)),
    **trace,
  )
  return dataclasses.replace(counted, **overrides), counted.output_spec


def CacheKey(
  cell: base_layer.BaseLayer,
  received: Nest,
  batch_spec: nested_map.NestedMap | None,
) -> Any:
  """Equal for cells that must have equal costs on equal inputs.

  Args:
    cell: the layer.
    received: nest of TensorSpecs, all that it receives.
    batch_spec: the micro-batch's fields.

  Returns:
    Something hashable.
  """
  fields = {name: (batch_spec or {}).get(name) for name in cell.BATCH_FIELDS}
  return (
    type(cell),
    cell.params.Copy().Set(name='').ToText(),
    cell.dtype,
    cell.fprop_dtype,
    repr(received),
    repr(fields),
    cell.Stashes(),
    cell.UsedWeights(),
  )


def _Overrides(cell: base_layer.BaseLayer, inputs_spec: Nest) -> dict[str, int]:
  if not hasattr(cell, 'Cost'):
    return {}
  overrides = dict(cell.Cost(inputs_spec))
  unknown = sorted(set(overrides) - set(_OVERRIDES))
  if unknown:
    raise ValueError(
      f'{type(cell).__name__}.Cost returns {", ".join(unknown)}; it may '
      f'return {", ".join(_OVERRIDES)}'
    )
  return overrides


def _Trace(
  cell: base_layer.BaseLayer,
  inputs_spec: Nest,
  batch_spec: nested_map.NestedMap | None,
  *,
  with_inputs: bool,
  popped: dict[str, Nest],
  shared: dict[str, tf.TensorSpec],
) -> dict[str, Any]:
  """Those fields of the CellCost that need a trace."""
  with tf.Graph().as_default() as graph:
    theta = cell.AbstractTheta()
    watched = _Trainable(cell, theta)
    inputs = micro_batch.Placeholders(inputs_spec)
    arriving = micro_batch.Placeholders(popped)
    borrowed = micro_batch.Placeholders(
      {name: shared[name] for name in cell.UsedWeights() if name in shared}
    )
    if with_inputs:
      watched += [x for x in _Tensors(inputs) if x.dtype.is_floating]
    watched += [x for x in _Tensors(arriving) if x.dtype.is_floating]
    watched += borrowed.values()
    args = [inputs]
    if cell.BATCH_FIELDS:
      args.append(_BatchFields(cell, batch_spec))
    step = tf.compat.v1.placeholder(tf.int64, [])
    micro_batch_index = tf.compat.v1.placeholder(tf.int64, [])
    context = fprop_context.FPropContext(
      do_eval=False,
      global_step=step,
      micro_batch=micro_batch_index,
      stashed=arriving,
      shared_weights=borrowed,
    )
    with context:
      with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(watched)
        outputs = micro_batch.ToTensors(cell.FProp(theta, *args))
        stashed = micro_batch.ToTensors(context.stashed)
        targets = _Targets(outputs, context)
        targets += [x for x in _Tensors(stashed) if x.dtype.is_floating]
      output_spec = micro_batch.Specs(outputs)
      _CheckStatic(output_spec)
      forward = graph.get_operations()
      forward_flops = flops.CountFlops(graph)
      gradients = tape.gradient(
        targets,
        watched,
        [tf.compat.v1.placeholder(y.dtype, y.shape) for y in targets],
      )
  backward = activations.Needed(
    graph.get_operations()[len(forward) :], gradients
  )
  return {
    'forward_flops': forward_flops,
    'backward_flops': flops.CountFlops(graph, backward),
    'activation_bytes': _Bytes(
      activations.ReadByBackward(
        forward,
        backward,
        sources=[
          *_Tensors([args, arriving]),
          step,
          micro_batch_index,
        ],
        inputs=_Tensors([args, arriving]),
        outputs=_Tensors([outputs, stashed]),
      )
    ),
    'output_bytes': _Bytes({x.ref(): x for x in _Tensors(outputs)}.values()),
    'output_spec': output_spec,
    'stashed': micro_batch.Specs(stashed),
  }


def _Trainable(cell, theta) -> list[tf.Tensor]:
  specs = tf.nest.flatten(cell.VariableSpecs())
  return [
    w
    for w, spec in zip(tf.nest.flatten(theta), specs, strict=True)
    if spec.trainable
  ]


def _BatchFields(cell, batch_spec) -> nested_map.NestedMap:
  missing = sorted(set(cell.BATCH_FIELDS) - set(batch_spec or {}))
  if missing:
    raise ValueError(
      f'it asks for the batch fields {", ".join(missing)} (BATCH_FIELDS), but '
      f'the batch has {sorted(batch_spec or {})}'
    )
  return nested_map.NestedMap(
    {
      name: micro_batch.Placeholders(batch_spec[name])
      for name in cell.BATCH_FIELDS
    }
  )


def _Targets(outputs: Nest, context) -> list[tf.Tensor]:
  """What the backward pass starts from, as in rematerialize.py."""
  aux_losses = list(context.aux_losses.values())
  loss = outputs.get('loss') if isinstance(outputs, dict) else None
  if isinstance(loss, metrics.WeightedSum):
    return [loss.total, *aux_losses]
  return [x for x in _Tensors(outputs) if x.dtype.is_floating] + aux_losses


def _CheckStatic(output_spec: Nest) -> None:
  for spec in _Tensors(output_spec):
    if not spec.shape.is_fully_defined():
      raise ValueError(
        f'the shape {spec.shape} of an output is not static; compute it from '
        'the static shapes of the inputs'
      )


def _Tensors(nest: Nest) -> list[Any]:
  """Tensors or TensorSpecs of a nest, without None and numbers."""
  return [x for x in tf.nest.flatten(nest) if hasattr(x, 'shape')]


def _Bytes(tensors: Any) -> int:
  return sum(x.shape.num_elements() * x.dtype.size for x in tensors)
