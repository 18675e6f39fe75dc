"""Tests of serving_module: equal to EvalStep, of any size, without devices."""

import tensorflow as tf

from lingvo_gpipe import base_layer, base_task, metrics, nested_map
from lingvo_gpipe.export import serving_module, serving_signature
from lingvo_gpipe.gpipe import placement, test_cells

NestedMap = nested_map.NestedMap
_DIM = 4


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _Lend(base_layer.BaseLayer):
  """x w; lends w, stashes x."""

  def __init__(self, params):
    super().__init__(params)
    self.CreateVariable('w', base_layer.WeightParams((_DIM, _DIM)))

  def SharedWeights(self):
    return {'table': 'w'}

  def Stashes(self):
    return ('x',)

  def FProp(self, theta, x):
    self.Stash('x', x)
    return x @ theta.w


class _Use(base_layer.BaseLayer):
  """The stashed x times the borrowed w, added; loss by labels."""

  BATCH_FIELDS = ('labels', 'weights')

  def UsedWeights(self):
    return ('table',)

  def Pops(self):
    return ('x',)

  def FProp(self, theta, y, batch):
    y += self.Pop('x') @ tf.transpose(self.SharedWeight('table'))
    errors = tf.reduce_sum(tf.square(y), 1) - batch.labels
    return NestedMap(
      loss=metrics.Weighted(errors, batch.weights), predictions=y
    )


_SIGNATURE = serving_signature.ServingSignature(
  tf.TensorSpec([None, _DIM], tf.float64, 'points'),
  lambda points: {'inputs': points},
  lambda outputs: {'predictions': outputs.predictions},
)


def _Task(cells, dtype=tf.float64, **kwargs):
  p = base_task.BaseTask.Params().Set(name='task', dtype=dtype)
  p.net.Set(cells=cells, num_micro_batches=2, **kwargs)
  return p


def _Trained(params, batch):
  """A task on two devices whose variables and averages all differ."""
  task = params.Set(**{'net.num_partitions': 2}).Instantiate()
  task.Plan(batch, ['/device:CPU:0', '/device:CPU:1'])
  task.InstantiateVariables()
  for i, variable in enumerate(task.variables_for_checkpoint.values()):
    noise = tf.random.stateless_normal(
      variable.shape, (i, 1), 0.0, 0.5, tf.float64
    )
    variable.assign_add(tf.cast(noise, variable.dtype))
  return task


def _Module(params, trained, batch):
  """The module with the trained task's values, as a checkpoint brings them."""
  module = serving_module.ServingModule(params.Instantiate(), batch)
  values = trained.variables_for_checkpoint
  for name, variable in module.variables_for_checkpoint.items():
    variable.assign(values[name])
  return module


def _Predictions(task, batch):
  """Of evaluation, which returns them beside its metrics."""
  theta = task.net.ThetaFrom(task.ema.Averages(task.net.vars))
  return task.net.FProp(theta, batch).predictions


def _Devices(function):
  """Devices of all operations in a graph and in the functions it calls."""
  definition = function.graph.as_graph_def()
  nodes = list(definition.node)
  for called in definition.library.function:
    nodes += called.node_def
  return {node.device for node in nodes}


class ServingModuleTest(tf.test.TestCase):
  def _Check(self, params, batch):
    trained = _Trained(params.Copy(), batch)
    module = _Module(params, trained, batch)
    function = module.Function(_SIGNATURE)
    expected = _Predictions(trained, batch)
    for size in (1, 5, 24):
      found = function(batch.inputs[:size])['predictions']
      self.assertAllClose(found, expected[:size], rtol=1e-12, atol=1e-12)
    self.assertEqual(function(batch.inputs[:0])['predictions'].shape[0], 0)
    self.assertEqual(_Devices(function), {''})
    return module

  def testEqualsEvaluation(self):
    # Skip connections inside nests, integers, None, dropout, moving moments.
    cells = test_cells.Cells(_DIM, keep_prob=0.5)
    module = self._Check(_Task(cells), test_cells.Batch(24, _DIM))
    self.assertLen(module.weights, 12)
    self.assertIn('task/net/norm/mean', module.variables_for_checkpoint)

  def testAverages(self):
    params = _Task(test_cells.Cells(_DIM))
    params.train.ema.decay = 0.9
    module = self._Check(params, test_cells.Batch(24, _DIM))
    self.assertIn('task/net/norm/mean/ema', module.variables_for_checkpoint)
    self.assertLen(module.weights, 12)

  def testConnectedCells(self):
    cells = [
      _Lend.Params().Set(name='lend'),
      test_cells.Linear.Params().Set(
        name='linear', input_dim=_DIM, output_dim=_DIM
      ),
      _Use.Params().Set(name='use'),
    ]
    module = self._Check(_Task(cells), test_cells.Batch(24, _DIM))
    self.assertLen(module.weights, 3)

  def testHalfPrecision(self):
    params = _Task(test_cells.Cells(_DIM)[::5], tf.float32)
    params.net.fprop_dtype = tf.bfloat16
    batch = test_cells.Batch(24, _DIM, tf.float32)
    module = _Module(params, _Trained(params.Copy(), batch), batch)
    outputs = module.Function(_SIGNATURE)(tf.cast(batch.inputs, tf.float64))
    self.assertEqual(outputs['predictions'].dtype, tf.bfloat16)

  def testSignatureThatDoesNotFit(self):
    batch = test_cells.Batch(24, _DIM)
    task = _Task(test_cells.Cells(_DIM)).Instantiate()

    def _Function(module, to_batch):
      module.Function(
        serving_signature.ServingSignature(
          _SIGNATURE.input_spec, to_batch, _SIGNATURE.from_outputs
        )
      )

    module = serving_module.ServingModule(task, batch)
    with self.assertRaisesRegex(ValueError, "fields points .* not 'inputs'"):
      _Function(module, lambda x: {'points': x})
    with self.assertRaisesRegex(ValueError, 'must be equal'):
      _Function(module, lambda x: {'inputs': x[:, :2]})
    del batch['weights']
    module = serving_module.ServingModule(task, batch)
    with self.assertRaisesRegex(ValueError, "'weights', but .* inputs, labels"):
      _Function(module, lambda x: {'inputs': x})


if __name__ == '__main__':
  tf.test.main()
