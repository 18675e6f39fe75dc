"""The norm of each partition's gradients, as BaseTask.TrainStep returns it."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_task
from lingvo_gpipe.gpipe import micro_batch, placement, plain_model, test_cells


def setUpModule():
  placement.ConfigureLogicalCpus(4)


class _Lends(test_cells.Linear):
  """Lends its weights."""

  def SharedWeights(self):
    return {'w': 'w'}


class _Uses(test_cells.Join):
  """Uses the weights of another cell."""

  def UsedWeights(self):
    return ('w',)

  def FProp(self, theta, inputs):
    inputs = inputs.copy()
    inputs.x += tf.sin(inputs.x @ self.SharedWeight('w'))
    return super().FProp(theta, inputs)


def _Task(
  batch,
  num_partitions,
  num_replicas=1,
  first=test_cells.Linear,
  fifth=test_cells.Join,
):
  p = base_task.BaseTask.Params().Set(name='task', dtype=tf.float64)
  cells = test_cells.Cells()
  cells[0].cls, cells[4].cls = first, fifth
  p.net.Set(
    cells=cells,
    num_partitions=num_partitions,
    num_replicas=num_replicas,
    num_micro_batches=2,
  )
  task = p.Instantiate()
  task.Plan(micro_batch.Specs(batch))
  task.InstantiateVariables()
  return task


def _PartitionNorms(task, pairs):
  """Norms of gradients, by the partition that has their variable.

  Args:
    task: a task with a plan.
    pairs: (variable, gradient).

  Returns:
    A float for each partition.
  """
  of_path = {variable.name: gradient for variable, gradient in pairs}
  norms = []
  for stage in task.net.plan.stages:
    specs = [
      spec
      for cell in task.net.cells[stage.start : stage.end]
      for spec in tf.nest.flatten(cell.VariableSpecs())
    ]
    squares = [
      np.sum(np.square(of_path.pop(f'{spec.path}:0')))
      for spec in specs
      if spec.trainable
    ]
    norms.append(np.sqrt(np.sum(squares)))
  assert not of_path, of_path
  return norms


class PartitionGradNormsTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters((1, 1), (2, 1), (4, 1), (2, 2))
  def testThoseOfThePlainModel(self, num_partitions, num_replicas):
    batch = test_cells.Batch()
    task = _Task(batch, num_partitions, num_replicas)
    plain = plain_model.ComputeGradients(
      task.net.cells, batch, 2 * num_replicas, 0
    )
    expected = _PartitionNorms(
      task, zip(plain.variables, plain.grads, strict=True)
    )
    outputs = tf.function(task.TrainStep, autograph=False)(
      batch, tf.constant(0, tf.int64)
    )
    self.assertEqual(outputs.partition_grad_norms.shape, [num_partitions])
    self.assertAllClose(
      outputs.partition_grad_norms, expected, rtol=1e-12, atol=0
    )
    self.assertAllClose(outputs.grad_norm, np.linalg.norm(expected), rtol=1e-12)

  def testASharedWeightIsItsLenders(self):
    batch = test_cells.Batch()
    task = _Task(batch, 2, first=_Lends, fifth=_Uses)
    (border, _) = (stage.end for stage in task.net.plan.stages)
    self.assertBetween(border, 1, 4)  # The two are in different partitions.

    @tf.function(autograph=False)
    def _Both(batch, step):
      # Gradients of both uses together.
      return task.net.ComputeGradients(batch, step).grads, task.TrainStep(
        batch, step
      )

    grads, outputs = _Both(batch, tf.constant(0, tf.int64))
    pairs = zip(
      tf.nest.flatten(task.net.vars), tf.nest.flatten(grads), strict=True
    )
    trained = [(v, g) for v, g in pairs if g is not None]
    self.assertAllClose(
      outputs.partition_grad_norms,
      _PartitionNorms(task, trained),
      rtol=1e-12,
      atol=0,
    )


if __name__ == '__main__':
  tf.test.main()
