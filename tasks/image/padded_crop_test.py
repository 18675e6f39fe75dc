"""Tests of padded_crop."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import padded_crop


def _Crop(image, index, **kwargs):
  transform = padded_crop.PaddedCrop.Params().Set(**kwargs).Instantiate()
  return transform.Apply(image, tf.constant([3, index], tf.int64)).numpy()


class PaddedCropTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters('constant', 'reflect')
  def testAllShiftsAndNoOthers(self, mode):
    image = np.arange(1.0, 76.0, dtype=np.float32).reshape(5, 5, 3)
    padded = np.pad(image, [(1, 1), (1, 1), (0, 0)], mode)
    shifts = {
      padded[y : y + 5, x : x + 5].tobytes(): (y, x)
      for y in range(3)
      for x in range(3)
    }
    seen = [
      shifts[_Crop(tf.constant(image), i, pad=1, mode=mode).tobytes()]
      for i in range(150)
    ]
    counts = np.unique(seen, axis=0, return_counts=True)[1]
    self.assertLen(counts, 9)
    self.assertAllInRange(counts, 5, 32)  # 17 each, standard deviation 4.

  def testUnknownMode(self):
    with self.assertRaisesRegex(ValueError, "mode='wrap' is none of constant,"):
      _Crop(tf.zeros([5, 5, 3]), 0, mode='wrap')


if __name__ == '__main__':
  tf.test.main()
