"""Tests for adafactor."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_task, weights
from lingvo_gpipe.gpipe import micro_batch, placement, test_cells
from lingvo_gpipe.train import adafactor, checkpoint
from lingvo_gpipe.train import slots as slots_lib


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Spec(shape, dtype=tf.float64):
  return weights.VariableSpec(
    path='net/w',
    shape=shape,
    dtype=dtype,
    init=weights.WeightInit.Gaussian(1.0),
    trainable=True,
    collections=('l2',),
    seed=1,
  )


def _Create(optimizer, spec):
  variable = spec.Create()
  slots = {
    name: slots_lib.CreateSlot(slot, variable)
    for name, slot in optimizer.SlotSpecs(spec).items()
  }
  return variable, slots


class _Reference:
  """Algorithms 4 and 5 of arXiv 1804.04235, with its sums, matrix by matrix."""

  def __init__(self, w, beta1, relative, clip):
    self.w, self.beta1, self.relative, self.clip = w, beta1, relative, clip
    self.r = self.c = self.v = self.m = 0.0
    self.t = 0

  def Step(self, g, lr):
    self.t += 1
    beta2 = 1.0 - self.t**-0.8
    square = g**2 + 1e-30
    if g.ndim < 2 or 1 in g.shape[-2:]:
      self.v = beta2 * self.v + (1 - beta2) * square
      v = self.v
    else:
      self.r = beta2 * self.r + (1 - beta2) * square.sum(-1)
      self.c = beta2 * self.c + (1 - beta2) * square.sum(-2)
      outer = np.einsum('...i,...j->...ij', self.r, self.c)
      v = outer / self.r.sum(-1)[..., None, None]
    u = g / np.sqrt(v)
    u = u / max(1.0, np.sqrt(np.mean(u**2)) / self.clip)
    size = max(1e-3, np.sqrt(np.mean(self.w**2))) if self.relative else 1.0
    u = lr * size * u
    if self.beta1 is not None:
      u = self.m = self.beta1 * self.m + (1 - self.beta1) * u
    self.w = self.w - u


class AdafactorTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    shape=((3, 5), (7,), (2, 3, 4), (6, 1), ()),
    options=((None, True, 1.0), (0.8, True, 0.5), (0.0, False, 1.0)),
  )
  def testFollowsThePaper(self, shape, options):
    beta1, relative, clip = options
    optimizer = (
      adafactor.Adafactor.Params()
      .Set(
        beta1=beta1,
        multiply_by_parameter_scale=relative,
        clip_threshold=clip,
      )
      .Instantiate()
    )
    variable, slots = _Create(optimizer, _Spec(shape))
    reference = _Reference(variable.numpy(), beta1, relative, clip)
    in_graph = tf.function(
      lambda g, lr, t: optimizer.Apply(variable, g, slots, lr, t)
    )
    rng = np.random.RandomState(0)
    for step in range(6):
      g, lr = np.array(rng.randn(*shape)) * 2.0**step, 0.3 / (1 + step)
      if step % 2:
        in_graph(tf.constant(g), tf.constant(lr, tf.float64), tf.constant(step))
      else:
        optimizer.Apply(variable, tf.constant(g), slots, lr, step)
      reference.Step(g, lr)
      self.assertAllClose(variable, reference.w, rtol=1e-12, atol=1e-12)
    if 'v' in slots:
      self.assertAllClose(slots['v'], reference.v, rtol=1e-12)
    else:
      # Sums there, means here.
      self.assertAllClose(slots['vr'] * shape[-1], reference.r, rtol=1e-12)
      self.assertAllClose(slots['vc'] * shape[-2], reference.c, rtol=1e-12)
    if beta1 is not None:
      self.assertAllClose(slots['m'], reference.m, rtol=1e-12, atol=1e-15)

  @parameterized.parameters(
    ((1000, 300), {'vr': (1000,), 'vc': (300,)}),
    ((8, 20, 30), {'vr': (8, 20), 'vc': (8, 30)}),
    ((300,), {'v': (300,)}),
    ((), {'v': ()}),
    ((300, 1), {'v': (300, 1)}),
    ((3, 3, 1, 16), {'v': (3, 3, 1, 16)}),
  )
  def testSlotShapes(self, shape, expected):
    params = adafactor.Adafactor.Params()
    specs = params.Instantiate().SlotSpecs(_Spec(shape))
    self.assertEqual({name: s.shape for name, s in specs.items()}, expected)
    for name, spec in specs.items():
      self.assertEqual(spec.path, f'net/w/{name}')
      self.assertFalse(spec.trainable or spec.collections)
    specs = params.Set(beta1=0.9).Instantiate().SlotSpecs(_Spec(shape))
    self.assertEqual(
      {name: s.shape for name, s in specs.items()}, {**expected, 'm': shape}
    )

  def testMemoryOfAGiantIsThatOfItsEdges(self):
    spec = _Spec((10**6, 10**6), tf.float32)
    slots = adafactor.Adafactor.Params().Instantiate().SlotSpecs(spec)
    self.assertEqual(sum(s.num_bytes for s in slots.values()), 8 * 10**6)

  @parameterized.parameters(tf.float32, tf.bfloat16, tf.float16)
  def testHalfPrecisionVariablesHaveFloat32Slots(self, dtype):
    params = adafactor.Adafactor.Params().Set(
      multiply_by_parameter_scale=False, beta1=0.0
    )
    variable, slots = _Create(params.Instantiate(), _Spec((4, 3), dtype))
    self.assertAllEqual([s.dtype for s in slots.values()], [tf.float32] * 3)
    before = tf.cast(variable, tf.float32).numpy()
    # Its square is no number of float16.
    gradient = tf.fill([4, 3], tf.constant(1e-4, dtype))
    params.Instantiate().Apply(variable, gradient, slots, 0.5, 0)
    after = tf.cast(variable, tf.float32).numpy()
    self.assertAllClose(before - after, np.full((4, 3), 0.5), atol=0.02)

  @parameterized.parameters(1e-12, 1.0, 1e15)
  def testRowsAndColumnsWithoutAGradientStay(self, scale):
    """As those of a table whose ids have not come yet; in float32."""
    optimizer = adafactor.Adafactor.Params().Instantiate()
    variable, slots = _Create(optimizer, _Spec((6, 5), tf.float32))
    before = variable.numpy()
    gradient = np.zeros((6, 5), np.float32)
    gradient[1:3, :4] = scale
    for step in range(3):
      optimizer.Apply(variable, tf.constant(gradient), slots, 0.1, step)
    moved = variable.numpy() != before
    self.assertAllEqual(moved, gradient != 0)
    self.assertTrue(np.isfinite(variable.numpy()).all())

  def testAVariableThatIsZeroMovesByEpsilon2(self):
    optimizer = adafactor.Adafactor.Params().Instantiate()
    variable, slots = _Create(optimizer, _Spec((8,)))
    variable.assign(tf.zeros_like(variable))
    optimizer.Apply(variable, tf.ones([8], tf.float64), slots, 0.5, 0)
    self.assertAllClose(variable, np.full([8], -0.5e-3), rtol=1e-12)

  def testStaysOnTheVariablesDevice(self):
    params = adafactor.Adafactor.Params().Set(beta1=0.9)
    optimizer = params.Instantiate()
    with tf.device('CPU:1'):
      variable, slots = _Create(optimizer, _Spec((4, 3), tf.float32))
    for slot in slots.values():
      self.assertEndsWith(slot.device, 'CPU:1')

    @tf.function
    def _Update(gradient):
      with tf.device('CPU:0'):  # What surrounds the update does not matter.
        optimizer.Apply(variable, gradient, slots, 0.1, 0)

    concrete = _Update.get_concrete_function(tf.TensorSpec((4, 3)))
    nodes = [
      n
      for n in concrete.graph.as_graph_def().node
      if n.op in ('Mean', 'Rsqrt', 'AssignVariableOp', 'AssignSubVariableOp')
    ]
    self.assertGreaterEqual(len(nodes), 8)
    for node in nodes:
      self.assertEndsWith(node.device, 'CPU:1', node.name)

  @parameterized.parameters(
    ({'beta1': 1.0}, 'beta1=1.0 must be None or in'),
    ({'clip_threshold': 0.0}, 'clip_threshold=0.0 must be positive'),
    ({'epsilon1': -1.0}, 'epsilon1=-1.0 must be positive'),
  )
  def testParamsOutOfRange(self, values, message):
    with self.assertRaisesRegex(ValueError, f'^Adafactor: {message}'):
      adafactor.Adafactor.Params().Set(**values).Instantiate()


def _Task(num_partitions):
  p = base_task.BaseTask.Params().Set(name='task', dtype=tf.float64)
  p.net.Set(
    cells=test_cells.Cells(keep_prob=0.7),
    num_partitions=num_partitions,
    num_micro_batches=4,
  )
  p.train.ema.decay = 0.9
  p.train.learner.Set(
    optimizer=adafactor.Adafactor.Params().Set(beta1=0.9),
    learning_rate=0.1,
    clip_gradient_norm_to_value=1.0,
  )
  task = p.Instantiate()
  task.Plan(micro_batch.Specs(test_cells.Batch()))
  task.InstantiateVariables()
  return task


def _Train(task, steps):
  step_function = tf.function(task.TrainStep, autograph=False)
  for step in steps:
    outputs = step_function(test_cells.Batch(), tf.constant(step, tf.int64))
  return outputs


def _Values(task):
  return {k: v.numpy() for k, v in task.variables_for_checkpoint.items()}


class AdafactorPipelineTest(tf.test.TestCase):
  def testPartitionsAndRestoringMakeNoDifference(self):
    one, two = _Task(1), _Task(2)
    self.assertLen({v.device for v in tf.nest.flatten(two.vars)}, 2)
    start = _Values(one)
    for path, slot in two.learner.slots.items():
      owner = two.weights.get(path.rpartition('/')[0])
      if owner is not None:
        self.assertEqual(slot.device, owner.device)
    for task in (one, two):
      self.assertFalse(_Train(task, range(2)).update_skipped)
    directory = self.create_tempdir().full_path
    checkpoint.Checkpointer(
      directory, two.variables_for_checkpoint, model='a'
    ).Save(2)
    other = _Task(1)
    checkpoint.Checkpointer(
      directory, other.variables_for_checkpoint, model='a'
    ).Restore()
    for task in (one, two, other):
      _Train(task, [2])
    expected = _Values(one)
    self.assertTrue(any(path.endswith('/vr') for path in expected))
    for task in (two, other):
      values = _Values(task)
      self.assertEqual(values.keys(), expected.keys())
      for path, value in values.items():
        self.assertAllClose(
          value, expected[path], rtol=1e-9, atol=1e-12, msg=path
        )
    same = [k for k, v in start.items() if np.array_equal(v, expected[k])]
    self.assertEqual(same, ['learner/num_skipped'])

  def testThePlanCountsItsMemory(self):
    task = _Task(2)
    counted = sum(
      s.num_bytes for s in task.learner.SlotSpecs(task.VariableSpecs()).values()
    )
    actual = sum(
      slot.dtype.size * slot.shape.num_elements()
      for path, slot in task.learner.slots.items()
      if not path.startswith('learner/')
    )
    self.assertEqual(counted, actual)


if __name__ == '__main__':
  tf.test.main()
