"""Tests of mixup."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import mixup


def _Mixed(size=5, alpha=0.2, seed=(1, 2)):
  batch = {
    'inputs': tf.random.stateless_normal([size, 4, 4, 3], (1, 2)),
    'labels': tf.range(size),
  }
  transform = mixup.Mixup.Params().Set(alpha=alpha).Instantiate()
  seed = tf.constant(seed, tf.int64)
  return batch, transform, transform.Apply(batch, seed)


class MixupTest(tf.test.TestCase, parameterized.TestCase):
  def testMixesWithTheOtherLabel(self):
    batch, unused_transform, mixed = _Mixed()
    images, share = batch['inputs'].numpy(), mixed['mix'].numpy()
    self.assertAllEqual(mixed['labels'], [0, 1, 2, 3, 4])
    self.assertAllEqual(mixed['mixed_labels'], [4, 0, 1, 2, 3])
    for i, other in enumerate(mixed['mixed_labels'].numpy()):
      expected = share[i] * images[i] + (1 - share[i]) * images[other]
      self.assertAllClose(mixed['inputs'][i], expected)

  @parameterized.parameters(0.2, 1.0, 3.0)
  def testSharesAreBeta(self, alpha):
    share = _Mixed(4000, alpha)[2]['mix'].numpy().astype(np.float64)
    self.assertAllInRange(share, 0.0, 1.0)
    self.assertAllClose(share.mean(), 0.5, atol=0.03)
    self.assertAllClose(share.var(), 1 / (4 * (2 * alpha + 1)), atol=0.01)

  def testSmallAlphaHardlyMixes(self):
    share = _Mixed(1000, 0.01)[2]['mix'].numpy()
    self.assertLess(np.mean((share > 0.01) & (share < 0.99)), 0.1)
    self.assertAllClose(share.mean(), 0.5, atol=0.06)

  def testFields(self):
    batch, transform, mixed = _Mixed()
    extra = transform.ExtraFields(5)
    self.assertEqual(set(mixed), {*batch, *extra})
    for name, spec in extra.items():
      self.assertEqual(tf.TensorSpec.from_tensor(mixed[name]), spec)

  def testSeed(self):
    self.assertAllEqual(_Mixed()[2]['mix'], _Mixed()[2]['mix'])
    self.assertNotAllClose(_Mixed()[2]['mix'], _Mixed(seed=(1, 3))[2]['mix'])

  def testWrongAlpha(self):
    with self.assertRaisesRegex(ValueError, 'alpha=0.0 must be 0.01 or'):
      _Mixed(alpha=0.0)


if __name__ == '__main__':
  tf.test.main()
