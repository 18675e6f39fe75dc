"""Tests of sequential."""

import tensorflow as tf

from lingvo_gpipe.layers import dense, gradient_check, sequential


class SequentialTest(tf.test.TestCase):
  def testAppliesInOrder(self):
    p = sequential.Sequential.Params().Set(
      name='mlp',
      dtype=tf.float64,
      layers=[
        dense.Dense.Params().Set(
          input_dim=3, output_dim=4, activation='relu', name='hidden'
        ),
        dense.Dense.Params().Set(input_dim=4, output_dim=2),
      ],
    )
    layer = p.Instantiate()
    layer.InstantiateVariables()
    paths = [spec.path for spec in tf.nest.flatten(layer.VariableSpecs())]
    self.assertEqual(
      paths,
      ['mlp/hidden/b', 'mlp/hidden/w', 'mlp/layers_001/b', 'mlp/layers_001/w'],
    )
    x = gradient_check.Draw([5, 3], 1)
    hidden = tf.nn.relu(x @ layer.vars.layers[0].w)
    self.assertAllClose(layer(x), hidden @ layer.vars.layers[1].w)

  def testNoLayersIsTheIdentity(self):
    layer = sequential.Sequential.Params().Set(name='nothing').Instantiate()
    layer.InstantiateVariables()
    x = tf.ones([2])
    self.assertIs(layer(x), x)


if __name__ == '__main__':
  tf.test.main()
