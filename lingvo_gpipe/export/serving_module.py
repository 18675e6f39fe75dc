"""A network for serving: its cells one after the other, in evaluation mode.

  module = serving_module.ServingModule(task, batch_spec)
  checkpointer = checkpoint.Checkpointer(
    directory, module.variables_for_checkpoint, model=...)
  checkpointer.Restore(ignore_unused=True)
  module.Function(signature)(tensor)

There are no partitions, no micro-batches and no devices in the graph, and the
batch may have any size. Of the checkpoint only what evaluation goes by is read:
the averaged weights where the model has them, else the weights, and no slots of
the optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_task, nested_map
from lingvo_gpipe.export import serving_signature
from lingvo_gpipe.gpipe import gpipe, shared_weights
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap


class ServingModule(tf.Module):
  """The network of a task with plain copies of its variables.

  Args:
    task: without variables; none are made in it.
    batch_spec: NestedMap of TensorSpecs [N, ...] of the batch in evaluation,
      of any N.

  Attributes:
    weights: the variables, zero until they are restored, in the flat order of
      the network's VariableSpecs().
  """

  def __init__(self, task: base_task.BaseTask, batch_spec: NestedMap):
    super().__init__()
    specs = tf.nest.flatten(task.net.VariableSpecs())
    self.weights = [
      tf.Variable(
        tf.zeros(spec.shape, spec.dtype),
        trainable=spec.trainable,
        name=spec.path,
      )
      for spec in specs
    ]
    self._forward = _Forward(task.net, batch_spec)
    self._names = task.EvalNames()

  @property
  def variables_for_checkpoint(self) -> dict[str, tf.Variable]:
    """{name in checkpoints: the variable to restore from it}."""
    return dict(zip(self._names, self.weights, strict=True))

  def Function(
    self, signature: serving_signature.ServingSignature
  ) -> tf.types.experimental.ConcreteFunction:
    """The graph of a signature.

    Args:
      signature: what goes in and comes out.

    Returns:
      A function of `signature.input_spec` that returns {name: tensor}.

    Raises:
      ValueError: where the signature does not fit the network.
    """

    def _Serve(argument):
      outputs = self._forward(
        [weight.read_value() for weight in self.weights],
        signature.to_batch(argument),
        tf.shape(argument)[0],
        signature.compute,
      )
      return dict(signature.from_outputs(outputs))

    return tf.function(
      _Serve, input_signature=[signature.input_spec], autograph=False
    ).get_concrete_function()


class _Forward:
  """The function (values of the weights, fields of the batch) -> outputs."""

  def __init__(self, net: gpipe.GPipe, batch_spec: NestedMap):
    self._net = net
    self._batch_spec = batch_spec
    self._lenders = shared_weights.Find(net.cells)
    self._stage = stage_lib.Stage(0, 0, tuple(net.cells), device='')

  def __call__(
    self,
    values: list[tf.Tensor],
    fields: Mapping[str, tf.Tensor],
    batch_size: tf.Tensor,
    compute: Callable[..., Any] | None,
  ) -> Any:
    net, stage = self._net, self._stage
    theta = net.ThetaFrom(tf.nest.pack_sequence_as(net.VariableSpecs(), values))
    if compute is not None:
      return compute([stage], theta, NestedMap(fields))
    batch = self._Batch(fields, batch_size)
    inputs = batch[net.params.input_field]
    if inputs.dtype.is_floating:
      inputs = tf.cast(inputs, net.fprop_dtype)
    return stage.FProp(
      shared_weights.ThetaOf(stage, theta.cells, self._lenders),
      stage_lib.Carried(inputs, {}),
      batch,
      do_eval=True,
      global_step=0,
      micro_batch_index=0,
    ).carried.outputs

  def _Batch(
    self, fields: Mapping[str, tf.Tensor], batch_size: tf.Tensor
  ) -> NestedMap:
    """What the cells ask for: the fields given, and zeros for the others."""
    first = self._net.params.input_field
    if first not in fields:
      raise ValueError(
        f'the signature gives the fields {", ".join(sorted(fields))} of the '
        f'batch, but not {first!r}, which the first cell needs (net.input_field'
        ')'
      )
    batch = NestedMap()
    for name in (first, *self._stage.batch_fields):
      if name not in self._batch_spec:
        raise ValueError(
          f'the cells ask for the field {name!r}, but the batch in evaluation '
          f'has {", ".join(sorted(self._batch_spec))}'
        )
      spec = self._batch_spec[name]
      if name in fields:
        batch[name] = tf.ensure_shape(fields[name], [None, *spec.shape[1:]])
      else:
        batch[name] = tf.zeros([batch_size, *spec.shape[1:]], spec.dtype)
    return batch
