"""Gradients of layers against finite differences, for tests."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context

_DELTA = 1e-6
_DIRECTIONS = 3


def Draw(
  shape: list[int], seed: int, dtype: tf.DType = tf.float64
) -> tf.Tensor:
  """Fixed normal numbers."""
  return tf.random.stateless_normal(shape, (seed, 77), dtype=dtype)


def RandomTheta(layer: base_layer.BaseLayer) -> Any:
  """A theta of which no weight is special, such as a bias of zeros.

  Args:
    layer: has variables of float64.

  Returns:
    Its values, the trainable ones moved by draws.
  """
  trainable = [s.trainable for s in tf.nest.flatten(layer.VariableSpecs())]
  flat = [
    value + 0.3 * Draw(value.shape, i) if trainable[i] else value
    for i, value in enumerate(tf.nest.flatten(layer.theta))
  ]
  return tf.nest.pack_sequence_as(layer.theta, flat)


def AssertGradients(
  test: tf.test.TestCase,
  layer: base_layer.BaseLayer,
  inputs: Any,
  *,
  do_eval: bool = False,
  rtol: float = 1e-6,
) -> None:
  """Checks the gradients by all weights and inputs along random directions.

  Args:
    test: fails where they differ.
    layer: has variables of float64.
    inputs: nest of float64 tensors and None.
    do_eval: the mode of the forward pass.
    rtol: allowed relative difference.
  """
  theta = RandomTheta(layer)
  flat = [x for x in tf.nest.flatten((theta, inputs)) if x is not None]

  def _Objective(values: list[tf.Tensor]) -> tf.Tensor:
    rest = iter(values)
    full = [
      None if x is None else next(rest)
      for x in tf.nest.flatten((theta, inputs))
    ]
    packed = tf.nest.pack_sequence_as((theta, inputs), full)
    with fprop_context.FPropContext(do_eval=do_eval, global_step=5):
      outputs = layer.FProp(*packed)
    return tf.add_n(
      [
        tf.reduce_sum(y * Draw(y.shape, 1000 + i))
        for i, y in enumerate(tf.nest.flatten(outputs))
        if y is not None
      ]
    )

  _Objective = tf.function(_Objective, autograph=False)
  with tf.GradientTape() as tape:
    tape.watch(flat)
    objective = _Objective(flat)
  gradients = tape.gradient(
    objective, flat, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  for i in range(_DIRECTIONS):
    steps = [Draw(x.shape, 100 * i + j) for j, x in enumerate(flat)]
    along = [x + _DELTA * s for x, s in zip(flat, steps, strict=True)]
    against = [x - _DELTA * s for x, s in zip(flat, steps, strict=True)]
    measured = (_Objective(along) - _Objective(against)) / (2 * _DELTA)
    pairs = zip(gradients, steps, strict=True)
    computed = tf.add_n([tf.reduce_sum(g * s) for g, s in pairs])
    test.assertNotAllClose(computed, 0.0)
    test.assertAllClose(computed, measured, rtol=rtol, atol=1e-7)
