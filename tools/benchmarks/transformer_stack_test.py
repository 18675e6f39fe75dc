"""Tests of transformer_stack."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import fprop_context, nested_map, user_error
from tools.benchmarks import stack_sizes, transformer_stack

_SIZES = stack_sizes.PRESETS['small']


def _Instantiate(index):
  cell = transformer_stack.Cells(_SIZES)[index].Instantiate()
  cell.InstantiateVariables()
  return cell


def _Norm(x, scale):
  mean, variance = np.mean(x, -1), np.var(x, -1)
  return (x - mean[..., None]) / np.sqrt(variance + 1e-6)[..., None] * scale


def _Block(x, w):
  """The block by its definition, example by example and head by head."""
  outputs = []
  for example in x:
    y = _Norm(example, w['attention_scale'])
    q, k, v = np.split(y @ w['qkv'], 3, axis=-1)
    heads = []
    for of_head in range(_SIZES.heads):
      width = _SIZES.model_dim // _SIZES.heads
      columns = slice(of_head * width, (of_head + 1) * width)
      scores = np.exp(q[:, columns] @ k[:, columns].T / np.sqrt(width))
      heads.append(scores / scores.sum(-1, keepdims=True) @ v[:, columns])
    y = example + np.concatenate(heads, -1) @ w['post']
    hidden = np.maximum(_Norm(y, w['ffn_scale']) @ w['hidden'], 0.0)
    outputs.append(y + hidden @ w['output'])
  return np.stack(outputs)


class TransformerStackTest(tf.test.TestCase):
  def testBlock(self):
    block = _Instantiate(2)
    arrays = transformer_stack.WeightArrays(_SIZES)
    draw = np.random.default_rng(3)
    weights = {
      name.removeprefix('block_0/'): array
      for name, array in arrays.items()
      if name.startswith('block_0/')
    }
    for name, array in weights.items():
      if name.endswith('scale'):
        array[:] = draw.uniform(0.5, 2.0, array.shape)
    transformer_stack.AssignWeights([block.vars, None], arrays)
    x = transformer_stack.BatchArrays(_SIZES)['inputs']
    with fprop_context.FPropContext(do_eval=False):
      self.assertAllClose(block(tf.constant(x)), _Block(x, weights), 1e-4, 1e-4)

  def testLoss(self):
    loss = _Instantiate(-1)
    inputs, labels = tf.ones([4, 2, 3]), tf.zeros([4, 2, 3])
    batch = nested_map.NestedMap(labels=labels)
    with fprop_context.FPropContext(do_eval=False):
      value = loss.FProp(loss.theta, 2.0 * inputs, batch).loss
    self.assertEqual(float(value.Mean()), 4.0)
    self.assertEqual(float(value.weight), 4.0)

  def testAllWeightsAreAssigned(self):
    cells = [c.Instantiate() for c in transformer_stack.Cells(_SIZES)]
    for cell in cells:
      cell.InstantiateVariables()
    arrays = transformer_stack.WeightArrays(_SIZES)
    variables = tf.nest.flatten([cell.vars for cell in cells])
    self.assertLen(variables, len(arrays))
    self.assertEqual(sum(v.shape.num_elements() for v in variables), 8_320)
    self.assertEqual(_SIZES.params, 8_320)
    transformer_stack.AssignWeights([cell.vars for cell in cells], arrays)
    self.assertAllEqual(
      cells[3].vars.feed_forward.hidden.w, arrays['block_3/hidden']
    )

  def testArraysAreFixed(self):
    for make in (transformer_stack.BatchArrays, transformer_stack.WeightArrays):
      first, second = make(_SIZES), make(_SIZES)
      for name, array in first.items():
        self.assertAllEqual(array, second[name])
    spec = transformer_stack.BatchSpec(_SIZES).inputs
    self.assertEqual(
      tf.TensorSpec.from_tensor(transformer_stack.Batch(_SIZES).inputs), spec
    )

  def testCheckLosses(self):
    transformer_stack.CheckLosses({'a': 2.0, 'b': 2.00001})
    for other in (2.0001, float('nan')):
      with self.assertRaisesRegex(
        user_error.TrainingError, 'b has the loss .* but a has 2.000000'
      ):
        transformer_stack.CheckLosses({'a': 2.0, 'b': other})


if __name__ == '__main__':
  absltest.main()
