"""Tests of layer_in_context; connected_cells_test has skip connections."""

import tensorflow as tf

from lingvo_gpipe import base_layer, fprop_context, nested_map


class _Linear(base_layer.BaseLayer):
  """Reports what it sees."""

  def FProp(self, theta, inputs):
    self.ReportStatistics(nested_map.NestedMap(rows=tf.shape(inputs)[0]))
    self.AddAuxLoss('norm', tf.reduce_sum(inputs))
    self.AddMetric('mean', tf.reduce_sum(inputs), tf.size(inputs))
    return inputs


def _Tower(**kwargs):
  """A layer with a list of children and a child."""
  tower = base_layer.BaseLayer.Params().Set(name='tower', **kwargs)
  tower = tower.Instantiate()
  tower.CreateChildren('layers', [_Linear.Params()])
  tower.CreateChild('last', _Linear.Params())
  return tower


class ReportsTest(tf.test.TestCase):
  def testOnlyTrainingReports(self):
    layer = _Linear.Params().Set(name='a').Instantiate()
    layer.InstantiateVariables()
    with fprop_context.FPropContext(do_eval=False) as context:
      layer(tf.ones([2, 3]))
    self.assertAllEqual(context.statistics['a'].rows, 2)
    self.assertAllClose(context.aux_losses, {'a/norm': 6.0})
    mean = context.metrics['a/mean']
    self.assertEqual((float(mean.total), float(mean.weight)), (6.0, 6.0))
    with fprop_context.FPropContext(do_eval=True) as context:
      layer(tf.ones([2, 3]))
    self.assertEmpty(context.statistics)
    self.assertEmpty(context.aux_losses)

  def testALayerThatReportsMustApply(self):
    layer = _Linear.Params().Set(name='a').Instantiate()
    with self.assertRaisesRegex(NotImplementedError, 'a reports statistics'):
      layer.ApplyStatistics(nested_map.NestedMap())


class StatelessSeedTest(tf.test.TestCase):
  def _Seed(self, layer, step, micro_batch, name=''):
    with fprop_context.FPropContext(
      do_eval=False, global_step=step, micro_batch=micro_batch
    ):
      return tuple(layer.StatelessSeed(name).numpy())

  def testNeverCollides(self):
    tower = _Tower()
    # Beyond 2**24 a float32 could not tell neighbours apart.
    steps = [0, 1, 2**24, 2**24 + 1, 2**31, 2**40 + 1]
    seeds = {
      self._Seed(layer, step, micro_batch, name)
      for layer in (tower.last, tower.layers[0])
      for step in steps
      for micro_batch in (0, 1, 2**16)
      for name in ('', 'mask')
    }
    self.assertLen(seeds, 2 * 6 * 3 * 2)

  def testIsAFunctionOfItsArguments(self):
    a, b = (_Tower().last for _ in range(2))
    self.assertEqual(self._Seed(a, 5, 1), self._Seed(b, 5, 1))
    self.assertEqual(
      self._Seed(a, 5, 1), self._Seed(a, tf.constant(5), tf.constant(1))
    )
    other = _Tower(random_seed=9).last
    self.assertNotEqual(self._Seed(a, 5, 1), self._Seed(other, 5, 1))


if __name__ == '__main__':
  tf.test.main()
