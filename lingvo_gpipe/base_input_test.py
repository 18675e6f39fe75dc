"""Tests of base_input."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import base_input, nested_map, user_error


class _Numbers(base_input.RandomAccessInput):
  """Example i is the number i; training adds a draw."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('size', 10, 'Number of examples.')
    return p

  @property
  def num_examples(self):
    return self.params.size

  def BatchSpec(self):
    n = self.params.batch_size
    return nested_map.NestedMap(
      inputs=tf.TensorSpec([n], tf.int64),
      noise=tf.TensorSpec([n], tf.float32),
      weights=tf.TensorSpec([n], tf.float32),
    )

  def Examples(self, indices, seed):
    noise = tf.random.stateless_uniform(tf.shape(indices), seed)
    return {'inputs': indices, 'noise': noise}


def _Input(**kwargs):
  return _Numbers.Params().Set(**kwargs).Instantiate()


def _Batches(generator, position=0, count=None):
  dataset = generator.Dataset(position).as_numpy_iterator()
  return list(itertools.islice(dataset, count))


def _Inputs(batches):
  return np.concatenate([b['inputs'] for b in batches])


class RandomAccessInputTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(1, 3, 4, 10, 16)
  def testEvaluationIsOnePass(self, batch_size):
    generator = _Input(batch_size=batch_size)
    batches = _Batches(generator)
    self.assertLen(batches, generator.num_batches)
    inputs = _Inputs(batches)
    weights = np.concatenate([b['weights'] for b in batches])
    self.assertAllEqual(inputs[weights == 1.0], np.arange(10))
    self.assertAllEqual(weights, [1.0] * 10 + [0.0] * (len(inputs) - 10))
    self.assertLess(len(inputs) - 10, batch_size)

  @parameterized.parameters(1, 3, 5, 10, 16)
  def testEveryEpochHasEveryExample(self, batch_size):
    generator = _Input(batch_size=batch_size, training=True)
    inputs = _Inputs(_Batches(generator, count=5 * 10))[:50].reshape(5, 10)
    self.assertAllEqual(np.sort(inputs, 1), np.tile(np.arange(10), [5, 1]))
    self.assertLen(np.unique(inputs, axis=0), 5)

  def testOrderLooksRandom(self):
    generator = _Input(batch_size=1000, size=1000, training=True)
    inputs = _Inputs(_Batches(generator, count=20)).reshape(20, 1000)
    self.assertAllClose(inputs.mean(0).mean(), 499.5)
    # Of 1000 values with a standard deviation of 64.5 each.
    self.assertLess(inputs.mean(0).std(), 90.0)
    neighbours = np.corrcoef(inputs[:, :-1].ravel(), inputs[:, 1:].ravel())
    epochs = np.corrcoef(inputs[:-1].ravel(), inputs[1:].ravel())
    self.assertAllClose(neighbours[0, 1], 0.0, atol=0.03)
    self.assertAllClose(epochs[0, 1], 0.0, atol=0.03)

  @parameterized.parameters(True, False)
  def testAnyPositionCanBeReached(self, training):
    generator = _Input(batch_size=3, training=training)
    unbroken = _Batches(generator, count=4)
    for position in range(4):
      resumed = _Batches(generator, position, count=4 - position)
      self.assertLen(resumed, 4 - position)
      for a, b in zip(resumed, unbroken[position:], strict=True):
        for name in b:
          self.assertAllEqual(a[name], b[name])

  def testFarPosition(self):
    generator = _Input(batch_size=4, training=True)
    batch = _Batches(generator, 2**40, count=1)[0]
    self.assertAllInRange(batch['inputs'], 0, 9)

  def testSeeds(self):
    def _First(seed):
      return _Batches(
        _Input(batch_size=10, training=True, random_seed=seed), count=2
      )

    one, other = _First(1), _First(2)
    self.assertNotAllEqual(one[0]['inputs'], other[0]['inputs'])
    self.assertNotAllEqual(one[0]['noise'], other[0]['noise'])
    self.assertNotAllEqual(one[0]['noise'], one[1]['noise'])

  def testOneExample(self):
    generator = _Input(batch_size=3, size=1, training=True)
    self.assertAllEqual(_Batches(generator, count=1)[0]['inputs'], [0, 0, 0])

  def testOneShapeOfMiniBatches(self):
    numbers = _Input()
    self.assertEqual(numbers.BatchSpecs(), [numbers.BatchSpec()])

  def testStaticShapes(self):
    generator = _Input(batch_size=3)
    spec = generator.Dataset().element_spec
    self.assertEqual(spec, dict(generator.BatchSpec()))

  def testErrors(self):
    with self.assertRaisesRegex(ValueError, '_Numbers: batch_size=0 must be 1'):
      _Input(batch_size=0)
    with self.assertRaisesRegex(ValueError, '_Numbers has no examples'):
      _Input(size=0).Dataset()


class EpochOrderTest(tf.test.TestCase):
  def testAnyPlacesCanBeAsked(self):
    order = base_input.EpochOrder(tf.range(30, dtype=tf.int64), 10, 1).numpy()
    self.assertAllEqual(
      base_input.EpochOrder(tf.constant([29, 3, 17], tf.int64), 10, 1),
      order[[29, 3, 17]],
    )
    self.assertAllEqual(
      np.sort(order.reshape(3, 10), 1), np.tile(np.arange(10), [3, 1])
    )

  def testIsTheOrderOfInputs(self):
    generator = _Input(batch_size=10, training=True, random_seed=5)
    self.assertAllEqual(
      _Inputs(_Batches(generator, count=2)),
      base_input.EpochOrder(tf.range(20, dtype=tf.int64), 10, 5),
    )


class CheckTest(tf.test.TestCase):
  def _Read(self, limit):
    def _Checked(x):
      fine = base_input.Check(
        x < limit,
        lambda: tf.strings.join(['number ', tf.strings.as_string(x), ' [big]']),
      )
      with tf.control_dependencies([fine]):
        return tf.identity(x)

    return [int(x) for x in tf.data.Dataset.range(5).map(_Checked)]

  def testFine(self):
    with base_input.UserErrors():
      self.assertEqual(self._Read(5), [0, 1, 2, 3, 4])

  def testFails(self):
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r'number 3'):
      self._Read(3)
    with self.assertRaises(user_error.UserError) as caught:
      with base_input.UserErrors():
        self._Read(3)
    self.assertEqual(str(caught.exception), 'number 3 [big]')

  def testOtherErrorsPass(self):
    with self.assertRaises(tf.errors.InvalidArgumentError):
      with base_input.UserErrors():
        tf.debugging.assert_equal(1, 2)


if __name__ == '__main__':
  tf.test.main()
