"""Tests of digits_input."""

import gzip
import importlib.util
import os
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import user_error
from tasks.image import digits_input


def _Input(**kwargs):
  return digits_input.DigitsInput.Params().Set(**kwargs).Instantiate()


class DigitsInputTest(tf.test.TestCase, parameterized.TestCase):
  def testLoad(self):
    images, labels = digits_input.Load()
    self.assertEqual(images.shape, (1797, 8, 8, 1))
    self.assertEqual((images.min(), images.max()), (0.0, 1.0))
    self.assertAllEqual(labels[:10], np.arange(10))
    self.assertEqual((images.dtype, labels.dtype), (np.float32, np.int32))

  def testSplit(self):
    unused_images, labels = digits_input.Load()
    parts = digits_input.Split(labels)
    sizes = {name: len(part) for name, part in parts.items()}
    self.assertEqual(sizes, {'train': 1254, 'dev': 179, 'test': 364})
    together = np.sort(np.concatenate(list(parts.values())))
    self.assertAllEqual(together, np.arange(1797))
    counts = np.bincount(labels)
    for name, share in (('test', 0.2), ('dev', 0.1), ('train', 0.7)):
      part = np.bincount(labels[parts[name]])
      self.assertAllClose(part, share * counts, atol=1.6, msg=name)
    # The rule must not change: results are compared by it.
    self.assertAllEqual(parts['test'][:8], _FIRST_OF_TEST)

  def testPartsShareNoImage(self):
    images, labels = digits_input.Load()
    parts = digits_input.Split(labels)
    train = {images[i].tobytes() for i in parts['train']}
    for name in ('dev', 'test'):
      self.assertFalse(train & {images[i].tobytes() for i in parts[name]})

  @parameterized.parameters(True, False)
  def testBatches(self, training):
    generator = _Input(batch_size=50, training=training)
    spec = generator.BatchSpec()
    batch = next(iter(generator.Dataset()))
    self.assertEqual(set(batch), set(spec))
    for name, value in batch.items():
      self.assertEqual(value.shape, spec[name].shape, name)
      self.assertEqual(value.dtype, spec[name].dtype, name)
    self.assertAllInRange(batch['inputs'], 0.0, 1.0 + 1e-6)

  def testEvaluationGivesTheTestPartOnce(self):
    images, labels = digits_input.Load()
    part = digits_input.Split(labels)['test']
    batches = list(_Input(batch_size=100, split='test').Dataset())
    self.assertLen(batches, 4)
    weights = np.concatenate([b['weights'] for b in batches])
    self.assertAllEqual(weights, [1.0] * 364 + [0.0] * 36)
    inputs = np.concatenate([b['inputs'] for b in batches])
    self.assertAllEqual(inputs[:364], images[part])
    found = np.concatenate([b['labels'] for b in batches])
    self.assertAllEqual(found[:364], labels[part])

  def testTrainingAugments(self):
    plain = _Input(training=True, max_rotation=0.0, max_zoom=0.0, max_shift=0.0)
    batch = next(iter(_Input(training=True).Dataset()))
    expected = next(iter(plain.Dataset()))
    self.assertAllEqual(batch['labels'], expected['labels'])
    self.assertNotAllClose(batch['inputs'], expected['inputs'])
    # It remains the same digit: the nearest one before augmentation is.
    a = tf.reshape(batch['inputs'], [64, 64]).numpy()
    b = tf.reshape(expected['inputs'], [64, 64]).numpy()
    nearest = ((a[:, np.newaxis] - b) ** 2).sum(-1).argmin(1)
    labels = batch['labels'].numpy()
    self.assertGreater((labels[nearest] == labels).mean(), 0.9)

  def testSpecNeedsNoData(self):
    with mock.patch.object(importlib.util, 'find_spec', return_value=None):
      spec = _Input(batch_size=32).BatchSpec()
    self.assertEqual(spec.inputs.shape, [32, 8, 8, 1])

  def testOwnFile(self):
    path = os.path.join(self.get_temp_dir(), 'own.csv.gz')
    images, labels = digits_input.Load()
    rows = np.concatenate(
      [images.reshape(-1, 64) * 16, labels[:, np.newaxis]], axis=1
    )
    with gzip.open(path, 'wt') as f:
      np.savetxt(f, rows[:100], fmt='%d', delimiter=',')
    own_images, own_labels = digits_input.Load(path)
    self.assertAllEqual(own_images, images[:100])
    self.assertAllEqual(own_labels, labels[:100])

  def testMissingPackage(self):
    with mock.patch.object(importlib.util, 'find_spec', return_value=None):
      with self.assertRaisesRegex(
        user_error.UserError,
        'scikit-learn, which is not installed: pip install scikit-learn, or '
        'name the file by --model_params_override=input.path=',
      ):
        next(iter(_Input().Dataset()))

  def testPackageWithoutTheFile(self):
    spec = mock.Mock(submodule_search_locations=[self.get_temp_dir()])
    with mock.patch.object(importlib.util, 'find_spec', return_value=spec):
      with self.assertRaisesRegex(
        user_error.UserError, 'scikit-learn, which has no digits.csv.gz'
      ):
        digits_input.Load()

  def testWrongFile(self):
    folder = self.get_temp_dir()
    missing = os.path.join(folder, 'missing.csv.gz')
    plain = os.path.join(folder, 'plain.csv.gz')
    with open(plain, 'w') as f:
      f.write('0,1,2')
    narrow = os.path.join(folder, 'narrow.csv.gz')
    with gzip.open(narrow, 'wt') as f:
      f.write('0,1,2\n')
    for path in (missing, plain, narrow):
      with self.assertRaisesRegex(
        user_error.UserError, f'{path} is no file of digits'
      ):
        digits_input.Load(path)

  def testUnknownSplit(self):
    with self.assertRaisesRegex(ValueError, "split='eval' is none of train, "):
      _Input(split='eval')

  def testServedBytes(self):
    images, unused_labels = digits_input.Load()
    pixels = np.round(images[:3] * 255).astype(np.uint8)
    generator = _Input()
    signature = generator.ServingSignatures()['image_bytes']
    contents = tf.stack([tf.io.encode_png(x) for x in pixels])
    inputs = signature.to_batch(contents)['inputs']
    self.assertAllClose(inputs, pixels / 255.0, atol=1e-6)
    # A picture three times as large, in colour, is the same.
    large = np.kron(pixels[0], np.ones([3, 3, 3], np.uint8))
    contents = tf.io.encode_png(large)[tf.newaxis]
    inputs = signature.to_batch(contents)['inputs']
    self.assertAllClose(inputs[0], pixels[0] / 255.0, atol=1e-6)
    self.assertEqual(generator.ClassNames(), list('0123456789'))


_FIRST_OF_TEST = [0, 1, 4, 8, 14, 17, 23, 25]


if __name__ == '__main__':
  tf.test.main()
