"""Tests of base_task."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_task, fprop_context
from lingvo_gpipe.gpipe import micro_batch, placement, test_cells
from lingvo_gpipe.train import checkpoint, optimizers

_BATCH_SIZE = 24


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Batch(scale=1.0):
  batch = test_cells.Batch(_BATCH_SIZE, dtype=tf.float32)
  batch.inputs *= scale
  return batch


class _Overflow(test_cells.Norm):
  """Reports sums that overflow; its outputs and gradients stay finite."""

  def ReportStatistics(self, statistics):
    statistics.total += np.float32('inf')
    super().ReportStatistics(statistics)


class _Reporting(test_cells.Linear):
  """Reports the mean of its inputs as a metric."""

  def FProp(self, theta, inputs):
    self.AddMetric('mean', tf.reduce_sum(inputs), inputs.shape.num_elements())
    return super().FProp(theta, inputs)


class _HeadWithRate(test_cells.Head):
  """A metric has the name of the learning rate."""

  def FProp(self, theta, inputs, batch):
    outputs = super().FProp(theta, inputs, batch)
    outputs.learning_rate = outputs.absolute
    return outputs


def _Task(
  num_partitions=2,
  norm=test_cells.Norm,
  first=test_cells.Linear,
  head=test_cells.Head,
  keep_prob=1.0,
  num_micro_batches=4,
  **train,
):
  p = base_task.BaseTask.Params().Set(name='task')
  cells = test_cells.Cells(keep_prob=keep_prob)
  cells[1] = norm.Params().Set(name='norm', dim=4)
  cells[0].cls, cells[-1].cls = first, head
  p.net.Set(
    cells=cells,
    num_partitions=num_partitions,
    num_micro_batches=num_micro_batches,
  )
  p.train.learner.optimizer = optimizers.Momentum.Params()
  p.train.Set({f'{k.replace("__", ".")}': v for k, v in train.items()})
  task = p.Instantiate()
  task.Plan(micro_batch.Specs(_Batch()))
  task.InstantiateVariables()
  return task


def _Values(task):
  return {k: v.numpy() for k, v in task.variables_for_checkpoint.items()}


def _Step(task):
  return tf.function(task.TrainStep, autograph=False)


class TrainStepTest(tf.test.TestCase):
  def testUpdatesWeightsSlotsAndMoments(self):
    task = _Task(keep_prob=0.7)
    before = _Values(task)
    outputs = _Step(task)(_Batch(), tf.constant(0, tf.int64))
    changed = {
      k for k, v in _Values(task).items() if not np.array_equal(v, before[k])
    }
    self.assertEqual(changed, before.keys() - {'learner/num_skipped'})
    self.assertIn('task/net/norm/mean', changed)
    self.assertFalse(outputs.update_skipped)
    self.assertGreater(outputs.grad_norm, 0)
    self.assertAllClose(outputs.learning_rate, 0.01)
    # The objective is the main loss and the auxiliary one.
    aux_loss = outputs.aux_losses['task/net/carry/size']
    self.assertGreater(aux_loss, 0)
    self.assertAllClose(outputs.loss, outputs.metrics.loss.Mean() + aux_loss)

  def testDoesWhatItsPartsDo(self):
    task, parts = _Task(), _Task()
    step_function = _Step(task)
    for step in range(2):
      step = tf.constant(step, tf.int64)
      step_function(_Batch(), step)
      result = parts.net.ComputeGradients(_Batch(), step)
      parts.learner.Apply(parts.net.vars, result.grads, step)
      parts.net.ApplyStatistics(result.statistics)
    self.assertAllClose(_Values(task), _Values(parts), rtol=1e-6, atol=1e-7)

  def testNonfiniteGradientsChangeNothing(self):
    task = _Task(ema__decay=0.9)
    step = _Step(task)
    step(_Batch(), tf.constant(0, tf.int64))
    before = _Values(task)
    outputs = step(_Batch(float('nan')), tf.constant(1, tf.int64))
    self.assertTrue(outputs.update_skipped)
    after = _Values(task)
    self.assertEqual(after.pop('learner/num_skipped'), 1)
    for path, value in after.items():
      np.testing.assert_array_equal(value, before[path], err_msg=path)
    # And the run can go on.
    outputs = step(_Batch(), tf.constant(2, tf.int64))
    self.assertFalse(outputs.update_skipped)
    self.assertAllInSet([np.isfinite(v).all() for v in after.values()], [True])

  def testAStepWithOverflowingStatisticsChangesNothing(self):
    task = _Task(norm=_Overflow)
    before = _Values(task)
    outputs = _Step(task)(_Batch(), tf.constant(0, tf.int64))
    self.assertTrue(outputs.update_skipped)
    after = _Values(task)
    for path in ('task/net/norm/mean', 'task/net/norm/gamma'):
      np.testing.assert_array_equal(after[path], before[path])

  def testReportsWhatCellsReport(self):
    batch = _Batch()
    outputs = _Step(_Task(first=_Reporting))(batch, tf.constant(0, tf.int64))
    self.assertEqual(set(outputs.cell_metrics), {'task/net/linear/mean'})
    value = outputs.cell_metrics['task/net/linear/mean']
    # Summed over all micro-batches.
    self.assertEqual(value.weight, _BATCH_SIZE * 4)
    self.assertAllClose(value.Mean(), tf.reduce_mean(batch.inputs))

  def testMetricWithATakenName(self):
    task = _Task(head=_HeadWithRate)
    with self.assertRaisesRegex(
      ValueError, r'^task/net/head \(_HeadWithRate\) .* called learning_rate,'
    ):
      _Step(task)(_Batch(), tf.constant(0, tf.int64))

  def testNamesDoNotDependOnPartitions(self):
    one, two = _Task(num_partitions=1), _Task(num_partitions=2)
    self.assertEqual(_Values(one).keys(), _Values(two).keys())
    devices = {v.device for v in tf.nest.flatten(two.vars)}
    self.assertLen(devices, 2)
    for path, slot in two.learner.slots.items():
      if path.endswith('/momentum'):
        weight = two.variables_for_checkpoint[path.removesuffix('/momentum')]
        self.assertEqual(slot.device, weight.device)


class EvalStepTest(tf.test.TestCase):
  def _Mean(self, task, batch):
    metrics = tf.function(task.EvalStep, autograph=False)(batch)
    self.assertEqual(set(metrics), {'loss', 'absolute'})  # no predictions
    return metrics.absolute

  def testPaddingHasNoWeight(self):
    task = _Task()
    batch = _Batch()
    whole = self._Mean(task, batch)
    kept = tf.cast(tf.range(_BATCH_SIZE) < 10, tf.float32)
    parts = []
    for part in (kept, 1 - kept):
      padded = batch.copy()
      padded.weights = batch.weights * part
      # What stands in the padding does not matter.
      padded.inputs = tf.where(part[:, tf.newaxis] > 0, batch.inputs, 99.0)
      parts.append(self._Mean(task, padded))
    self.assertAllClose(whole.total, parts[0].total + parts[1].total)
    self.assertAllClose(whole.weight, parts[0].weight + parts[1].weight)

  def testHasNoDropoutAndUsesMovingMoments(self):
    task = _Task(keep_prob=0.5)
    batch = _Batch()
    first = self._Mean(task, batch)
    self.assertAllEqual(first.total, self._Mean(task, batch).total)
    task.net.cells[1].vars.mean.assign(tf.ones([4]))
    self.assertNotAllClose(first.total, self._Mean(task, batch).total)

  def testUsesAveragedWeights(self):
    task = _Task(ema__decay=0.9)
    batch = _Batch()
    before = self._Mean(task, batch)
    for weight in tf.nest.flatten(task.vars):
      weight.assign(weight * 2)
    self.assertAllEqual(before.total, self._Mean(task, batch).total)
    task.ema.Reset(task.vars)
    self.assertNotAllClose(before.total, self._Mean(task, batch).total)


class EvalOutputsTest(tf.test.TestCase):
  def testOutputsOfExamplesInTheirOrder(self):
    batch = _Batch()
    for num_partitions, num_micro_batches in ((1, 1), (1, 6), (2, 4), (2, 24)):
      task = _Task(num_partitions, num_micro_batches=num_micro_batches)
      result = tf.function(task.EvalOutputs, autograph=False)(batch)
      self.assertEqual(set(result.metrics), {'loss', 'absolute'})
      self.assertEqual(set(result.outputs), {'predictions'})
      # Each example alone, without a pipeline.
      x = batch.inputs
      with fprop_context.FPropContext(do_eval=True):
        for cell in task.net.cells[:-1]:
          x = cell.FProp(cell.theta, x)
        last = task.net.cells[-1]
        expected = last.FProp(last.theta, x, batch).predictions
      self.assertAllClose(result.outputs.predictions, expected, rtol=1e-5)
    self.assertEqual(
      float(result.metrics.loss.total), float(task.EvalStep(batch).loss.total)
    )


class InitFromTest(tf.test.TestCase):
  def testWeightsAndAveragesButNoSlots(self):
    other = _Task(num_partitions=1, ema__decay=0.9)
    step = _Step(other)
    for t in range(3):
      step(_Batch(), tf.constant(t, tf.int64))
    directory = self.create_tempdir().full_path
    saver = checkpoint.Checkpointer(directory, other.variables_for_checkpoint)
    saver.Save(3)
    task = _Task(
      ema__decay=0.99,
      init_from__checkpoint=directory,
      init_from__exclude=['head/.*'],
    )
    before = _Values(task)
    plan = task.init_from.Plan(task.VariableSpecs())
    self.assertEqual(plan.random, ('task/net/head/b', 'task/net/head/w'))
    task.InitFrom(plan)
    theirs = _Values(other)
    for path, value in _Values(task).items():
      name = path.removesuffix('/ema')
      if path.startswith('task/net/head') or name not in task.weights:
        self.assertAllEqual(value, before[path], path)
      else:
        self.assertAllEqual(value, theirs[f'{name}/ema'], path)
        self.assertNotAllEqual(value, theirs[name], path)


class ParamsTest(tf.test.TestCase):
  def testImpossibleNumbers(self):
    with self.assertRaisesRegex(ValueError, 'train.max_steps=0 must be 1'):
      _Task(max_steps=0)

  def testTextRoundTrip(self):
    p = base_task.BaseTask.Params().Set(name='task')
    p.net.cells = test_cells.Cells()
    q = p.Copy().FromText(p.ToText())
    self.assertEqual(p, q)

  def testThePlanCountsSlotsAndAverages(self):
    sizes = []
    for decay in (0.0, 0.99):
      task = _Task(ema__decay=decay)
      sizes.append(sum(s.memory_bytes for s in task.net.plan.stages))
      # Momentum's slots, of the weights that are trained.
      slots = sum(spec.num_bytes for spec in task.StateSpecs().values())
      self.assertEqual(sum(task._StateBytes()), slots)
    averages = sum(
      spec.num_bytes for spec in tf.nest.flatten(task.VariableSpecs())
    )
    self.assertEqual(sizes[1] - sizes[0], averages)

  def testStateSpecsAreWhatIsCreated(self):
    task = _Task(ema__decay=0.9)
    created = {**task.learner.slots, **task.ema.slots}
    specs = task.StateSpecs()
    self.assertEqual(
      {k: tuple(v.shape) for k, v in created.items() if 'learner/' not in k},
      {k: s.shape for k, s in specs.items()},
    )


if __name__ == '__main__':
  tf.test.main()
