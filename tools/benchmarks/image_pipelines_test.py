"""Tests of image_pipelines."""

import os

import tensorflow as tf
from absl.testing import absltest

from tools.benchmarks import generated_pictures, image_pipelines


class _Endless:
  """Notes how many mini-batches were taken."""

  def __init__(self):
    self.params = type('Params', (), {'batch_size': 5})
    self.taken = 0

  def Dataset(self):
    while True:
      self.taken += 1
      yield {}


class ImagePipelinesTest(absltest.TestCase):
  def testInputsRun(self):
    folder = os.path.join(self.create_tempdir().full_path, 'pictures')
    folders, dataset, _ = generated_pictures.Write(folder, 4)
    inputs = image_pipelines.Inputs(
      folders, dataset, image_size=16, batch_size=3, num_parallel_calls=0
    )
    self.assertLen(inputs, 6)
    for generator in inputs.values():
      batch = next(iter(generator.Dataset()))
      self.assertEqual(batch['inputs'].shape, [3, 16, 16, 3])
      self.assertLess(float(tf.reduce_max(tf.abs(batch['inputs']))), 3.0)

  def testRate(self):
    generator = _Endless()
    times = iter([10.0, 10.0, 10.5, 11.0, 11.5, 12.0])
    rate = image_pipelines.Rate(generator, 1.5, lambda: next(times))
    # After two of warm-up three of five images each, read in two seconds.
    self.assertEqual(generator.taken, 5)
    self.assertAlmostEqual(rate, 15 / 2.0)


if __name__ == '__main__':
  absltest.main()
