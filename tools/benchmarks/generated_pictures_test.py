"""Tests of generated_pictures."""

import os

import numpy as np
import tensorflow as tf

from tools.benchmarks import generated_pictures, image_pipelines


class GeneratedPicturesTest(tf.test.TestCase):
  def testPicture(self):
    pictures = [generated_pictures.Picture(i) for i in range(3)]
    self.assertLen(set(pictures), 3)
    self.assertEqual(pictures[1], generated_pictures.Picture(1))
    image = tf.io.decode_jpeg(pictures[0])
    self.assertEqual(image.shape, [300, 400, 3])

  def testBothFormsHoldThem(self):
    folder = os.path.join(self.create_tempdir().full_path, 'pictures')
    folders, dataset, size = generated_pictures.Write(folder, 6)
    sizes = [len(generated_pictures.Picture(i)) for i in range(6)]
    self.assertAllClose(size, np.mean(sizes))
    inputs = image_pipelines.Inputs(
      folders, dataset, image_size=8, batch_size=6, num_parallel_calls=1
    )
    images = [
      next(iter(inputs[source, 'centre crop'].Dataset()))['inputs'].numpy()
      for source in ('folder', 'tfds')
    ]
    self.assertCountEqual(*[[x.tobytes() for x in part] for part in images])


if __name__ == '__main__':
  tf.test.main()
