"""Tests of imagenet: the paper's sizes, recipe and partitions, without data."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import registry
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.train import schedules
from params.image import imagenet


def _NumParameters(task):
  specs = tf.nest.flatten(task.net.VariableSpecs())
  return sum(spec.size for spec in specs if spec.trainable)


def _Task(name):
  return registry.GetParams(name, 'Train').Instantiate()


class SizesTest(parameterized.TestCase):
  @parameterized.parameters(
    # Table 1: 82M, 318M, 542M, 1.05B, 1.8B (1.843 by the genotype).
    ('AmoebaNetD18x208', 82e6, 0.005),
    ('AmoebaNetD18x416', 318e6, 0.005),
    ('AmoebaNetD18x544', 542e6, 0.005),
    ('AmoebaNetD36x544', 1.05e9, 0.005),
    ('AmoebaNetD72x512', 1.843e9, 0.0005),
    # Tables 2 and 3, whose sizes are not printed; 31.56M and 121.91M without
    # the auxiliary head.
    ('AmoebaNetD18x128', 32.2e6, 0.005),
    ('AmoebaNetD18x256', 122.6e6, 0.005),
    # Section 4: 557M; the auxiliary head at 480 px adds 1.8M.
    ('AmoebaNetB18x512', 559.06e6, 0.0005),
    ('ResNet50', 25_557_032, 0),
    ('ResNet101', 44_549_160, 0),
  )
  def testNumberOfParameters(self, name, expected, tolerance):
    count = _NumParameters(_Task(f'image.imagenet.{name}'))
    self.assertLessEqual(abs(count / expected - 1), tolerance, count)

  def testAmoebaNetBWithoutAuxiliaryHead(self):
    class _Model(imagenet.AmoebaNetB18x512):
      AUX_LOSS_WEIGHT = 0.0

    count = _NumParameters(_Model().Model().Instantiate())
    self.assertAlmostEqual(count / 557.28e6, 1, delta=1e-4)

  @parameterized.parameters(
    ('AmoebaNetD18x544', 2),
    ('AmoebaNetD36x544', 4),
    ('AmoebaNetD72x512', 8),
    ('AmoebaNetB18x512', 4),
  )
  def testPartitionsOfThePaper(self, name, num_partitions):
    net = registry.GetParams(f'image.imagenet.{name}').net
    self.assertEqual(net.num_partitions, num_partitions)


class RecipeTest(parameterized.TestCase):
  def testEpochsFollowTheBatchSize(self):
    class _Model(imagenet.AmoebaNetB18x512):
      BATCH_SIZE = 2 * imagenet.AmoebaNetB18x512.BATCH_SIZE

    params, other = imagenet.AmoebaNetB18x512().Model(), _Model().Model()
    self.assertAlmostEqual(
      params.train.max_steps, 2 * other.train.max_steps, delta=1
    )
    for p, n in ((params, 128), (other, 256)):
      ramp = p.train.learner.lr_schedule
      self.assertEqual(ramp.warmup_steps, round(3 * 1_281_167 / n))
      self.assertAlmostEqual(ramp.schedule.decay_steps, 3 * 1_281_167 / n)

  def testLearningRate(self):
    learner = _Task('image.imagenet.AmoebaNetD18x256').learner
    schedule = learner.lr_schedule

    def _Value(epoch):
      return float(schedule.Value(round(epoch * 1_281_167 / 128)))

    self.assertEqual(_Value(0), 0.0)
    self.assertAlmostEqual(_Value(1.5), 0.5, delta=1e-3)  # Warm-up.
    self.assertAlmostEqual(_Value(3.01), 0.97, delta=1e-6)
    self.assertAlmostEqual(_Value(24.1), 0.97**10, delta=1e-6)
    self.assertIsInstance(schedule, schedules.LinearRampup)

  def testKernelsDecayAndNothingElse(self):
    for name in ('AmoebaNetB18x512', 'ResNet50'):
      for spec in tf.nest.flatten(
        _Task(f'image.imagenet.{name}').net.VariableSpecs()
      ):
        kernel = len(spec.shape) > 1
        self.assertEqual('l2' in spec.collections, kernel, spec.path)


class PlanTest(parameterized.TestCase):
  @parameterized.parameters((2, 1.97), (4, 3.83), (8, 6.70))
  def testBalanceOfTable2(self, num_partitions, speedup):
    """As good as cuts between cells can be; see the facts of its FLOPs."""
    placement.ConfigureLogicalCpus(8)
    params = registry.GetParams('image.imagenet.AmoebaNetD18x256', 'Train')
    params.net.Set(num_partitions=num_partitions, rematerialize='none')
    task = params.Instantiate()
    plan = task.Plan(params.input.Instantiate().BatchSpec())
    work = [s.forward_flops + s.backward_flops for s in plan.stages]
    self.assertAlmostEqual(sum(work) / max(work), speedup, delta=0.02)


if __name__ == '__main__':
  absltest.main()
