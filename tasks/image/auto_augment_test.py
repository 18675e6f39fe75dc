"""Tests of auto_augment."""

import itertools
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import (
  auto_augment,
  auto_augment_policies,
  image_ops,
  test_pictures,
)

_Ranges = auto_augment_policies.Ranges


def _Image():
  return tf.constant(test_pictures.Picture(1, 20, 30), tf.float32)


def _Runner(transform):
  """From seeds to images, traced once."""
  run = tf.function(transform.Apply, autograph=False)
  return lambda i: run(_Image(), tf.constant([7, i], tf.int64)).numpy()


def _Apply(name, value):
  image = tf.cast(_Image(), tf.uint8)
  output = image_ops.OPERATIONS[name](image, tf.constant(value, tf.float32))
  return output.numpy().astype(np.float32)


class AutoAugmentTest(tf.test.TestCase, parameterized.TestCase):
  def _WithPolicy(self, *sub_policies):
    policy = auto_augment_policies.Policy(
      _Ranges(10, {'Solarize': (0.0, 100.0), 'Rotate': (0.0, 180.0)}),
      sub_policies,
    )
    with mock.patch.dict(auto_augment_policies.POLICIES, {'own': policy}):
      params = auto_augment.AutoAugment.Params().Set(policy='own')
      return _Runner(params.Instantiate())

  def testAppliesBothInOrder(self):
    run = self._WithPolicy((('Solarize', 1.0, 6), ('Invert', 1.0, 0)))
    expected = 255.0 - _Apply('Solarize', 60.0)
    for i in range(5):
      self.assertAllEqual(run(i), expected)

  def testProbabilities(self):
    run = self._WithPolicy((('Invert', 0.25, 0), ('Solarize', 0.5, 6)))
    image, inverted = _Image().numpy(), _Apply('Invert', 0.0)
    solarized = _Apply('Solarize', 60.0)
    kinds = {
      image.tobytes(): 0,
      inverted.tobytes(): 1,
      solarized.tobytes(): 2,
      np.where(inverted < 60, inverted, 255 - inverted).tobytes(): 3,
    }
    self.assertLen(kinds, 4)
    counts = np.bincount([kinds[run(i).tobytes()] for i in range(400)])
    expected = 400 * np.array([0.375, 0.125, 0.375, 0.125])
    self.assertAllClose(counts, expected, atol=40)

  def testSubPoliciesAreEquallyLikely(self):
    steps = [(('Solarize', 1.0, m), ('Solarize', 0.0, 0)) for m in range(1, 6)]
    run = self._WithPolicy(*steps)
    kinds = {_Apply('Solarize', 10.0 * m).tobytes(): m - 1 for m in range(1, 6)}
    counts = np.bincount([kinds[run(i).tobytes()] for i in range(500)])
    self.assertAllInRange(counts, 65, 140)

  def testEitherSign(self):
    run = self._WithPolicy((('Rotate', 1.0, 5), ('Invert', 0.0, 0)))
    turns = {_Apply('Rotate', 90.0 * s).tobytes(): s for s in (-1, 1)}
    signs = [turns[run(i).tobytes()] for i in range(100)]
    self.assertBetween(sum(signs), -40, 40)

  @parameterized.parameters(*auto_augment_policies.POLICIES)
  def testPoliciesRun(self, name):
    run = _Runner(
      auto_augment.AutoAugment.Params().Set(policy=name).Instantiate()
    )
    outputs = [run(i) for i in range(60)]
    self.assertGreater(len({x.tobytes() for x in outputs}), 20)
    for x in outputs:
      self.assertEqual((x.shape, x.dtype), ((20, 30, 3), np.float32))
      self.assertAllInRange(x, 0.0, 255.0)
      self.assertAllEqual(x, np.round(x))
    self.assertAllEqual(outputs[3], run(3))

  def testUnknownPolicy(self):
    with self.assertRaisesRegex(
      ValueError, "policy='svhn' is none of imagenet, imagenet_v0, cifar10"
    ):
      auto_augment.AutoAugment.Params().Set(policy='svhn').Instantiate()


class RandAugmentTest(tf.test.TestCase):
  def testAllOperationsAreEquallyLikely(self):
    params = auto_augment.RandAugment.Params().Set(num_ops=1, magnitude=7.0)
    run = _Runner(params.Instantiate())
    ranges = auto_augment_policies.CODE_RANGES
    kinds = {_Image().numpy().tobytes(): 'Nothing'}
    for name, sign in itertools.product(image_ops.OPERATIONS, (1, -1)):
      signed = name in auto_augment_policies.SIGNED
      value = ranges.Value(name, 7.0) * (sign if signed else 1)
      kinds[_Apply(name, value).tobytes()] = name
    names = [kinds[run(i).tobytes()] for i in range(700)]
    found, counts = np.unique(names, return_counts=True)
    self.assertCountEqual(
      found,
      ['Nothing', *set(image_ops.OPERATIONS) - {'Invert', 'SolarizeAdd'}],
    )
    self.assertAllInRange(counts, 25, 80)  # 50 each.

  def testNumberOfOperations(self):
    transforms = [
      _Runner(auto_augment.RandAugment.Params().Set(num_ops=n).Instantiate())
      for n in (0, 1, 2, 3)
    ]
    self.assertAllEqual(transforms[0](0), _Image())
    # Of the first draws nothing changes when there are more.
    outputs = [{run(i).tobytes() for i in range(40)} for run in transforms[1:]]
    self.assertLess(len(outputs[0]), len(outputs[1]))
    self.assertLessEqual(len(outputs[1]), len(outputs[2]))

  def testMagnitude(self):
    with self.assertRaisesRegex(ValueError, 'magnitude=11.0 must be from 0 to'):
      auto_augment.RandAugment.Params().Set(magnitude=11.0).Instantiate()


if __name__ == '__main__':
  tf.test.main()
