"""Tests of inception_crop."""

import numpy as np
import tensorflow as tf

from tasks.image import inception_crop


def _Boxes(count, height=300, width=400, **kwargs):
  crop = inception_crop.InceptionCrop.Params().Set(**kwargs).Instantiate()
  return np.array(
    [
      crop.Box(tf.constant([height, width]), tf.constant([7, i], tf.int64))
      for i in range(count)
    ]
  )


class InceptionCropTest(tf.test.TestCase):
  def testBoxes(self):
    top, left, height, width = _Boxes(600).T
    self.assertAllInRange(top, 0, 300)
    self.assertAllInRange(left, 0, 400)
    self.assertAllInRange(top + height, 1, 300)
    self.assertAllInRange(left + width, 1, 400)
    # Sides are whole pixels, so area and ratio are not exact.
    area, ratio = height * width / 120_000, width / height
    self.assertAllInRange(area, 0.079, 1.0)
    self.assertAllInRange(ratio, 0.74, 1.35)
    self.assertLess(area.min(), 0.12)
    self.assertGreater(area.max(), 0.85)
    self.assertLess(ratio.min(), 0.77)
    self.assertGreater(ratio.max(), 1.30)
    # Anywhere in the picture: the centre is, in the mean, that of the picture.
    self.assertAllClose((top + height / 2).mean(), 150.0, atol=5.0)
    self.assertAllClose((left + width / 2).mean(), 200.0, atol=7.0)

  def testRanges(self):
    _, _, height, width = _Boxes(
      100,
      min_area=0.25,
      max_area=0.3,
      min_aspect_ratio=1.0,
      max_aspect_ratio=1.0,
    ).T
    self.assertAllClose(width / height, np.ones(100), atol=0.01)
    self.assertAllInRange(height * width / 120_000, 0.245, 0.305)

  def testSeed(self):
    self.assertAllEqual(_Boxes(5), _Boxes(5))
    self.assertLen(np.unique(_Boxes(5), axis=0), 5)

  def testNoBoxFits(self):
    # No box of this ratio is large enough; the whole picture is taken.
    self.assertAllEqual(_Boxes(1, 10, 400, min_area=0.5), [[0, 0, 10, 400]])

  def testErrors(self):
    for kwargs in (
      {'min_area': 0.0},
      {'min_area': 0.5, 'max_area': 0.4},
      {'max_area': 1.1},
      {'min_aspect_ratio': 2.0},
    ):
      with self.assertRaisesRegex(ValueError, 'must be in this order'):
        _Boxes(0, **kwargs)


if __name__ == '__main__':
  tf.test.main()
