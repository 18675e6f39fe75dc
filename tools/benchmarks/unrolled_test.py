"""Tests of unrolled."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe import gpipe
from tools.benchmarks import stack_sizes, transformer_stack, unrolled

_SIZES = stack_sizes.Sizes(2, 8, 16, 2, 4, 8)


class UnrolledTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters('none', 'cell')
  def testGradientsAreThoseOfTheLoop(self, policy):
    net = (
      gpipe.GPipe.Params()
      .Set(
        name='net',
        cells=transformer_stack.Cells(_SIZES),
        num_micro_batches=4,
        rematerialize=policy,
      )
      .Instantiate()
    )
    batch = transformer_stack.Batch(_SIZES)
    net.Plan(batch)
    net.InstantiateVariables()

    @tf.function(autograph=False)
    def _Both(step):
      loop = net.ComputeGradients(batch, step)
      return (
        (loop.loss, tf.nest.flatten(loop.grads)),
        unrolled.ComputeGradients(net, batch, 4, policy, step),
      )

    (loss, gradients), (unrolled_loss, unrolled_gradients) = _Both(
      tf.constant(3, tf.int64)
    )
    self.assertAllClose(loss, unrolled_loss, 1e-6)
    self.assertLen(unrolled_gradients, 2 * 6)
    for a, b in zip(gradients, unrolled_gradients, strict=True):
      self.assertAllClose(a, b, 1e-5, 1e-6)


if __name__ == '__main__':
  absltest.main()
