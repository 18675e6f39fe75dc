"""What must hold for whole models: all are cut, the small ones are computed."""

import functools
import os
import resource
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import nested_map, registry
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.gpipe.planning import cost
from lingvo_gpipe.layers import gradient_check
from lingvo_gpipe.train import checkpoint

# Parameters of models that are computed here.
_SMALL = 5e6

# Examples of their mini-batches, and M.
_BATCH = 4
_MICRO_BATCHES = 2

# Of each weight; there are millions.
_DELTA = 1e-8

# Of this process, TensorFlow included, with every model cut. Those with 6e9
# parameters would take 24 GB.
_MEMORY = 3 * 2**30


def setUpModule():
  placement.ConfigureLogicalCpus(8)


@functools.cache
def _Models():
  return [model.name for model in registry.ListModels()]


@functools.cache
def _Lists():
  """One model for each list of kinds of cells, of all widths and data."""
  models = {}
  for name in _Models():
    cells = registry.GetParams(name, 'Train').net.cells
    models.setdefault(tuple(cell.cls for cell in cells), name)
  return set(models.values())


def _NumParameters(task):
  return sum(spec.size for spec in tf.nest.flatten(task.VariableSpecs()))


@functools.cache
def _SmallModels():
  return [
    name
    for name in sorted(_Lists())
    if _NumParameters(registry.GetParams(name, 'Train').Instantiate()) <= _SMALL
  ]


def _Batch(name, dtype=tf.float32):
  """Made up; all numbers below 4 are ids, labels, positions everywhere."""
  spec = registry.GetParams(name, 'Train').input.Instantiate().BatchSpec()
  batch = nested_map.NestedMap()
  for i, (field, s) in enumerate(sorted(spec.items())):
    shape = [_BATCH, *s.shape[1:]]
    if s.dtype.is_floating:
      batch[field] = tf.cast(
        tf.random.stateless_uniform(shape, (1, i), 0.1, 1.0), dtype
      )
    else:
      batch[field] = tf.cast(
        tf.random.stateless_uniform(shape, (2, i), 1, 4, tf.int32), s.dtype
      )
  return batch


def _Task(name, num_partitions=1, dtype=None):
  params = registry.GetParams(name, 'Train')
  params.net.Set(
    num_partitions=num_partitions,
    num_micro_batches=_MICRO_BATCHES,
    splits=None,
  )
  if dtype:
    params.dtype = dtype
  task = params.Instantiate()
  task.Plan(
    nested_map.NestedMap(
      {
        field: tf.TensorSpec(tensor.shape, tensor.dtype)
        for field, tensor in _Batch(name, dtype or tf.float32).items()
      }
    )
  )
  task.InstantiateVariables()
  return task


def _Values(task):
  return {k: v.numpy() for k, v in task.variables_for_checkpoint.items()}


class ModelConformanceTest(parameterized.TestCase, tf.test.TestCase):
  def testSmallModelsOfEveryKind(self):
    kinds = {name.split('.')[0] for name in _SmallModels()}
    self.assertEqual(kinds, {name.split('.')[0] for name in _Models()})

  @parameterized.parameters(*_Models())
  def testEveryNumberOfPartitionsUpTo8(self, name):
    """Names in checkpoints do not depend on K; no memory is taken."""
    expected = None
    # What cells cost does not depend on K either, and takes long to count.
    count, counted = cost.CountCells, {}

    def _CountOnce(cells, inputs, batch_spec, shared):
      key = str((inputs, batch_spec))
      if key not in counted:
        counted[key] = count(cells, inputs, batch_spec, shared)
      return counted[key]

    self.enter_context(mock.patch.object(cost, 'CountCells', _CountOnce))
    for k in range(1, 9) if name in _Lists() else (1, 8):
      params = registry.GetParams(name, 'Train')
      num_cells = len(params.net.cells)
      params.net.Set(
        num_partitions=min(k, num_cells),
        num_chunks=1,
        schedule='1f1b',
        splits=None,
      )
      task = params.Instantiate()
      plan = task.Plan(params.input.Instantiate().BatchSpec())
      self.assertLen(plan.stages, min(k, num_cells))
      ends = [stage.end for stage in plan.stages]
      self.assertEqual([s.start for s in plan.stages], [0, *ends[:-1]])
      self.assertEqual(ends[-1], num_cells)
      paths = [s.path for s in tf.nest.flatten(task.VariableSpecs())]
      expected = expected or paths
      self.assertEqual(paths, expected)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    self.assertLess(peak, _MEMORY)

  @parameterized.parameters(*_SmallModels())
  def testGraphAndXlaDoAsEager(self, name):
    task = _Task(name)
    batch = _Batch(name)
    eager = task.EvalStep(batch)
    for jit_compile in (False, True):
      step = tf.function(
        task.EvalStep, autograph=False, jit_compile=jit_compile
      )
      outputs = step(batch)
      tf.nest.assert_same_structure(eager, outputs)
      for a, b in zip(
        tf.nest.flatten(eager), tf.nest.flatten(outputs), strict=True
      ):
        np.testing.assert_allclose(a, b, rtol=1e-4)

  @parameterized.parameters(*_SmallModels())
  def testCheckpointThroughAnotherK(self, name):
    """K = 1 -> K = 3 -> K = 1, each with a step, are as three of K = 1."""
    batch = _Batch(name, tf.float64)
    directory = os.path.join(self.create_tempdir().full_path, 'train')

    def _Steps(num_partitions, first, count, directory=None):
      task = _Task(name, num_partitions, tf.float64)
      saver = directory and checkpoint.Checkpointer(
        directory, task.variables_for_checkpoint
      )
      if first and saver:
        self.assertEqual(saver.Restore()['global_step'], first)
      step = tf.function(task.TrainStep, autograph=False)
      for t in range(first, first + count):
        result = step(batch, tf.constant(t, tf.int64))
        self.assertFalse(bool(result.update_skipped))
      if saver:
        saver.Save(first + count)
      return _Values(task)

    expected = _Steps(1, 0, 3)
    _Steps(1, 0, 1, directory)
    _Steps(3, 1, 1, directory)
    actual = _Steps(1, 2, 1, directory)
    self.assertEqual(actual.keys(), expected.keys())
    for path, value in expected.items():
      # Gradients of one tensor are summed in another order.
      np.testing.assert_allclose(
        actual[path], value, rtol=1e-7, atol=1e-10, err_msg=path
      )

  @parameterized.parameters(*_SmallModels())
  def testGradients(self, name):
    """Along a random direction of all weights, against differences."""
    task = _Task(name, dtype=tf.float64)
    batch = _Batch(name, tf.float64)
    step = tf.constant(3, tf.int64)
    compute = tf.function(task.net.ComputeGradients, autograph=False)
    variables = tf.nest.flatten(task.net.vars)
    gradients = tf.nest.flatten(compute(batch, step).grads)
    before = [v.numpy() for v in variables]
    directions = [
      gradient_check.Draw(v.shape, 90 + i).numpy() * (g is not None)
      for i, (v, g) in enumerate(zip(variables, gradients, strict=True))
    ]
    expected = sum(
      float(tf.reduce_sum(tf.convert_to_tensor(g) * d))
      for g, d in zip(gradients, directions, strict=True)
      if g is not None
    )
    losses = []
    for sign in (1.0, -1.0):
      for variable, value, d in zip(variables, before, directions, strict=True):
        variable.assign(value + sign * _DELTA * d)
      losses.append(float(compute(batch, step).loss))
    self.assertNotEqual(expected, 0.0)
    difference = (losses[0] - losses[1]) / (2 * _DELTA)
    self.assertAlmostEqual(difference / expected, 1.0, places=4)


if __name__ == '__main__':
  tf.test.main()
