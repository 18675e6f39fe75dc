"""Tests of cutout."""

import numpy as np
import tensorflow as tf

from tasks.image import cutout


def _Hidden(index, height=20, width=30, **kwargs):
  """Which pixels a draw hides, [height, width]."""
  transform = cutout.Cutout.Params().Set(fill=[1.0, 2.0, 3.0], **kwargs)
  image = tf.random.stateless_uniform([height, width, 3], (1, 2), 10.0, 20.0)
  output = transform.Instantiate().Apply(
    image, tf.constant([3, index], tf.int64)
  )
  hidden = output.numpy()[..., 0] < 10.0
  expected = np.where(hidden[..., np.newaxis], [1.0, 2.0, 3.0], image)
  np.testing.assert_array_equal(output, expected)
  return hidden


class CutoutTest(tf.test.TestCase):
  def testSquaresAnywhere(self):
    total = np.zeros([20, 30])
    for i in range(300):
      hidden = _Hidden(i, size=6)
      rows, columns = (
        np.flatnonzero(hidden.any(1)),
        np.flatnonzero(hidden.any(0)),
      )
      # A filled rectangle: 6 x 6, or less at an edge.
      self.assertEqual(hidden.sum(), len(rows) * len(columns))
      self.assertEqual(rows[-1] - rows[0] + 1, len(rows))
      for places, end in ((rows, 20), (columns, 30)):
        at_edge = places[0] == 0 or places[-1] == end - 1
        self.assertTrue(len(places) == 6 or (at_edge and len(places) >= 3))
      total += hidden
    # Away from the edges each pixel is hidden equally often: 36 of 600 times.
    self.assertAllClose(total[6:-6, 6:-6].mean() / 300, 36 / 600, atol=0.015)
    self.assertTrue((total > 0).all())

  def testDefaultFillIsTheMean(self):
    fill = np.array(cutout.Cutout.Params().fill)
    self.assertAllClose(fill / 255, [0.485, 0.456, 0.406], rtol=1e-7)


if __name__ == '__main__':
  tf.test.main()
