"""What must hold for every layer: each class of this folder has a case here."""

import importlib
import inspect
import os
import pkgutil

import keras
import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_layer, fprop_context, nested_map
from lingvo_gpipe import layers as layers_package
from lingvo_gpipe.layers import (
  attention,
  conv,
  conv_norm,
  dense,
  dropout,
  embedding,
  feed_forward,
  gradient_check,
  keras_layer,
  norm,
  pooling,
  sequential,
  softmax,
  transformer,
)
from lingvo_gpipe.train import checkpoint

_BATCH = 3
_DELTA = 1e-6


def _Floats(*shape):
  return gradient_check.Draw([_BATCH, *shape], 5)


def _Ids(length, limit):
  return tf.random.stateless_uniform(
    [_BATCH, length], (1, 2), 0, limit, tf.int32
  )


# {name: (params, arguments of FProp behind theta)}.
_CASES = {
  'MultiHeadAttention': lambda: (
    attention.MultiHeadAttention.Params().Set(
      dim=8, num_heads=2, causal=True, keep_prob=0.8
    ),
    [_Floats(4, 8)],
  ),
  'Conv2D': lambda: (
    conv.Conv2D.Params().Set(filter_shape=(3, 3, 2, 4), activation='tanh'),
    [_Floats(5, 5, 2)],
  ),
  'SeparableConv2D': lambda: (
    conv.SeparableConv2D.Params().Set(
      filter_shape=(3, 3, 2, 4), filter_stride=(2, 2)
    ),
    [_Floats(5, 5, 2)],
  ),
  'ConvNorm': lambda: (
    conv_norm.ConvNorm.Params().Set(
      conv=conv.Conv2D.Params().Set(filter_shape=(1, 1, 2, 4), use_bias=False)
    ),
    [_Floats(4, 4, 2)],
  ),
  'Dense': lambda: (
    dense.Dense.Params().Set(input_dim=3, output_dim=4, activation='tanh'),
    [_Floats(3)],
  ),
  'Dropout': lambda: (
    dropout.Dropout.Params().Set(keep_prob=0.7),
    [_Floats(6)],
  ),
  'DropPath': lambda: (
    dropout.DropPath.Params().Set(keep_prob=0.7),
    [_Floats(2, 2, 3)],
  ),
  'TokenEmbedding': lambda: (
    embedding.TokenEmbedding.Params().Set(vocab_size=11, dim=6, keep_prob=0.9),
    [_Ids(5, 11)],
  ),
  'FeedForward': lambda: (
    feed_forward.FeedForward.Params().Set(
      dim=4, hidden_dim=8, activation='gelu', keep_prob=0.8
    ),
    [_Floats(3, 4)],
  ),
  'KerasLayer': lambda: (
    keras_layer.KerasLayer.FromLayer(
      keras.layers.Dense(4, activation='tanh'), input_shape=(3,)
    ),
    [_Floats(3)],
  ),
  'BatchNorm': lambda: (norm.BatchNorm.Params().Set(dim=4), [_Floats(3, 4)]),
  'LayerNorm': lambda: (norm.LayerNorm.Params().Set(dim=4), [_Floats(3, 4)]),
  'Pooling2D': lambda: (
    pooling.Pooling2D.Params().Set(pooling_type='AVG'),
    [_Floats(4, 4, 2)],
  ),
  'Sequential': lambda: (
    sequential.Sequential.Params().Set(
      layers=[
        dense.Dense.Params().Set(input_dim=3, output_dim=4),
        norm.LayerNorm.Params().Set(dim=4),
      ]
    ),
    [_Floats(3)],
  ),
  'SoftmaxLoss': lambda: (
    softmax.SoftmaxLoss.Params().Set(
      dim=4, vocab_size=7, label_smoothing=0.1, logits_abs_max=5.0
    ),
    [_Floats(5, 4), nested_map.NestedMap(labels=_Ids(5, 7))],
  ),
  'TransformerBlock': lambda: (
    transformer.TransformerBlock.Params().Set(
      dim=8,
      hidden_dim=12,
      num_heads=2,
      causal=True,
      activation='gelu',
      residual_keep_prob=0.9,
      hidden_keep_prob=0.9,
    ),
    [_Floats(4, 8)],
  ),
}


def _Layers():
  """Names of all layers of this folder."""
  names = set()
  for info in pkgutil.iter_modules(layers_package.__path__):
    if info.name.endswith('_test'):
      continue
    module = importlib.import_module(f'{layers_package.__name__}.{info.name}')
    for name, cls in inspect.getmembers(module, inspect.isclass):
      if (
        issubclass(cls, base_layer.BaseLayer)
        and cls.__module__ == module.__name__
        and not name.startswith('_')
      ):
        names.add(name)
  return names


def _Make(name):
  params, arguments = _CASES[name]()
  layer = params.Set(name='layer', dtype=tf.float64).Instantiate()
  layer.InstantiateVariables()
  return layer, arguments


def _FProp(layer, theta, arguments, do_eval):
  with fprop_context.FPropContext(
    do_eval=do_eval, global_step=3, micro_batch=1
  ):
    return layer.FProp(theta, *arguments)


class ConformanceTest(parameterized.TestCase, tf.test.TestCase):
  def testEveryLayerHasACase(self):
    self.assertEqual(_Layers(), set(_CASES))

  @parameterized.parameters(*_CASES)
  def testParams(self, name):
    params, unused_arguments = _CASES[name]()
    text = params.ToText()
    other = params.Copy()
    other.random_seed = 77
    self.assertNotEqual(other, params)
    self.assertEqual(other.FromText(text), params)
    self.assertEqual(other.ToText(), text)

  @parameterized.product(name=list(_CASES), do_eval=[False, True])
  def testGraphAndXlaDoAsEager(self, name, do_eval):
    layer, arguments = _Make(name)
    eager = _FProp(layer, layer.theta, arguments, do_eval)
    for jit_compile in (False, True):

      @tf.function(autograph=False, jit_compile=jit_compile)
      def _InGraph(*arguments):
        return _FProp(layer, layer.theta, arguments, do_eval)

      if jit_compile and not do_eval and _Draws(layer):
        continue  # XLA draws other numbers.
      # Types of outputs, too: a NestedMap stays one.
      outputs = _InGraph(*arguments)
      tf.nest.assert_same_structure(eager, outputs)
      for a, b in zip(
        tf.nest.flatten(eager), tf.nest.flatten(outputs), strict=True
      ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

  @parameterized.product(name=list(_CASES), do_eval=[False, True])
  def testGradients(self, name, do_eval):
    """Along random directions of all weights, against differences."""
    layer, arguments = _Make(name)
    theta = gradient_check.RandomTheta(layer)
    flat = tf.nest.flatten(theta)

    def _Objective(values):
      outputs = _FProp(
        layer, tf.nest.pack_sequence_as(theta, values), arguments, do_eval
      )
      if isinstance(outputs, dict) and 'loss' in outputs:
        outputs = outputs.loss.total  # Metrics have no gradient.
      return tf.add_n(
        [
          tf.reduce_sum(x * gradient_check.Draw(x.shape, 40 + i))
          for i, x in enumerate(tf.nest.flatten(outputs))
          if x.dtype == tf.float64
        ]
      )

    trainable = [s.trainable for s in tf.nest.flatten(layer.VariableSpecs())]
    directions = [
      gradient_check.Draw(v.shape, 90 + i) * float(t)
      for i, (v, t) in enumerate(zip(flat, trainable, strict=True))
    ]
    if not any(trainable):
      self.skipTest('it has no weights')
    with tf.GradientTape() as tape:
      tape.watch(flat)
      objective = _Objective(flat)
    gradients = tape.gradient(objective, flat)
    expected = sum(
      float(tf.reduce_sum(tf.convert_to_tensor(g) * d))
      for g, d in zip(gradients, directions, strict=True)
      if g is not None
    )
    ahead, behind = (
      float(
        _Objective(
          [
            v + tf.cast(sign * _DELTA * d, v.dtype)
            for v, d in zip(flat, directions, strict=True)
          ]
        )
      )
      for sign in (1.0, -1.0)
    )
    self.assertNotEqual(expected, 0.0)
    self.assertAlmostEqual(
      (ahead - behind) / (2 * _DELTA) / expected, 1.0, places=5
    )

  @parameterized.parameters(*_CASES)
  def testCheckpoint(self, name):
    layer, unused_arguments = _Make(name)
    variables = tf.nest.flatten(layer.vars)
    paths = [spec.path for spec in tf.nest.flatten(layer.VariableSpecs())]
    if not variables:
      self.skipTest('it has no variables')
    values = []
    for i, variable in enumerate(variables):
      values.append(
        tf.cast(gradient_check.Draw(variable.shape, i), variable.dtype)
      )
      variable.assign(values[-1])
    directory = os.path.join(self.create_tempdir().full_path, 'train')
    named = dict(zip(paths, variables, strict=True))
    checkpoint.Checkpointer(directory, named).Save(1)
    for variable in variables:
      variable.assign(tf.zeros_like(variable))
    checkpoint.Checkpointer(directory, named).Restore()
    for variable, value in zip(variables, values, strict=True):
      self.assertAllEqual(variable, value)


def _Draws(layer):
  """Whether a forward pass in training draws random numbers."""
  with (
    tf.Graph().as_default() as graph,
    fprop_context.FPropContext(do_eval=False, global_step=3, micro_batch=1),
  ):
    theta = layer.AbstractTheta()
    for argument in [_CASES[type(layer).__name__]()[1]]:
      layer.FProp(theta, *argument)
  return any('Random' in op.type for op in graph.get_operations())


if __name__ == '__main__':
  tf.test.main()
