"""Tests of named_failures."""

import threading

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.base_input import UserErrors
from tasks.image import named_failures


def _Square(element):
  """Fails where the text of a number is none."""
  number = tf.strings.to_number(element['text'], tf.int64)
  return {'square': number**2, 'pair': tf.stack([number, element['place']])}


def _Map(texts, *, calls=4, repeat=False):
  places = tf.data.Dataset.range(tf.int64.max)
  dataset = tf.data.Dataset.from_tensor_slices(texts)
  if repeat:
    dataset = dataset.repeat()
  dataset = tf.data.Dataset.zip({'text': dataset, 'place': places})
  return named_failures.Map(
    dataset,
    _Square,
    lambda element: tf.strings.join(['no number: ', element['text']]),
    num_parallel_calls=calls,
  )


def _Texts(size):
  return [str(i) for i in range(size)]


class NamedFailuresTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(size=[1, 63, 64, 65, 300], calls=[1, 4])
  def testMapsInOrder(self, size, calls):
    outputs = list(_Map(_Texts(size), calls=calls).as_numpy_iterator())
    expected = np.arange(size)
    self.assertAllEqual([x['square'] for x in outputs], expected**2)
    self.assertAllEqual(
      [x['pair'] for x in outputs], np.stack([expected] * 2, 1)
    )

  def testSpec(self):
    self.assertEqual(
      _Map(['1']).element_spec,
      {
        'square': tf.TensorSpec([], tf.int64),
        'pair': tf.TensorSpec([2], tf.int64),
      },
    )

  @parameterized.parameters(0, 1, 62, 63, 64, 98, 99)
  def testNamesTheFirstThatFails(self, place):
    texts = _Texts(100)
    texts[place] = 'x[1]'
    if place < 98:
      texts[place + 1] = 'y'
    outputs = []
    with self.assertRaises(user_error.UserError) as caught:
      with UserErrors():
        for x in _Map(texts):
          outputs.append(int(x['square']))
    self.assertEqual(str(caught.exception), 'no number: x[1]')
    # What comes before is still given.
    self.assertAllEqual(outputs, np.arange(place) ** 2)

  def testEverythingFails(self):
    with self.assertRaisesRegex(user_error.UserError, 'no number: a'):
      with UserErrors():
        next(iter(_Map(['a', 'b'], repeat=True)))

  def testErrorsOfTheDatasetPass(self):
    def _Fail(i):
      with tf.control_dependencies([tf.debugging.assert_less(i, np.int64(5))]):
        return tf.identity(i)

    dataset = named_failures.Map(
      tf.data.Dataset.range(10).map(_Fail),
      lambda i: i,
      lambda i: tf.constant('the map failed'),
      num_parallel_calls=2,
    )
    outputs = []
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'x < y'):
      for x in dataset:
        outputs.append(int(x))
    self.assertEqual(outputs, list(range(5)))

  def testRunsInParallel(self):
    # Passed by two calls at a time only; one alone gives up.
    barrier = threading.Barrier(2, timeout=60.0)

    def _Wait(i):
      number = tf.py_function(lambda: barrier.wait() * 0, [], tf.int64)
      return tf.ensure_shape(number, []) + i

    dataset = named_failures.Map(
      tf.data.Dataset.range(32),
      _Wait,
      tf.strings.as_string,
      num_parallel_calls=4,
    )
    options = tf.data.Options()
    options.threading.private_threadpool_size = 4
    dataset = dataset.with_options(options)
    self.assertEqual([int(x) for x in dataset], list(range(32)))


if __name__ == '__main__':
  tf.test.main()
