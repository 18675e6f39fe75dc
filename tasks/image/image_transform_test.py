"""Tests of image_transform."""

import numpy as np
import tensorflow as tf

from tasks.image import image_transform


class ImageTransformTest(tf.test.TestCase):
  def testUniform(self):
    draws = np.array(
      [
        image_transform.Uniform(tf.constant([1, i], tf.int64), (0, 1), (-2, 4))
        for i in range(400)
      ]
    )
    self.assertAllClose(draws.mean(0), [0.5, 1.0], atol=0.2)
    self.assertAllClose(draws.min(0), [0.0, -2.0], atol=0.1)
    self.assertAllClose(draws.max(0), [1.0, 4.0], atol=0.1)
    self.assertAllClose(np.corrcoef(draws.T)[0, 1], 0.0, atol=0.15)

  def testKindsMustBeFilledIn(self):
    seed = tf.constant([1, 2], tf.int64)
    for kind, call in (
      (image_transform.Crop, lambda x: x.Box(tf.constant([1, 1]), seed)),
      (image_transform.ImageTransform, lambda x: x.Apply(None, seed)),
      (image_transform.BatchTransform, lambda x: x.Apply({}, seed)),
    ):
      with self.assertRaisesRegex(NotImplementedError, kind.__name__):
        call(kind.Params().Instantiate())

  def testParamsAreOnesOwn(self):
    params = image_transform.Crop.Params()
    params.Define('area', 1.0, 'A param.')
    crop = params.Instantiate()
    params.area = 2.0
    self.assertEqual(crop.params.area, 1.0)


if __name__ == '__main__':
  tf.test.main()
