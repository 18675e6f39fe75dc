"""Tests of repeated_order."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.mt import repeated_order


def _Order(sizes, seed=1):
  return repeated_order.RepeatedOrder(np.array(sizes), seed)


def _Elements(order, sets, numbers):
  return order.Elements(
    tf.constant(sets, tf.int64), tf.constant(numbers, tf.int64)
  ).numpy()


class RepeatedOrderTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(1, 2, 3, 4, 12, 97, 5000)
  def testEachPassIsAPermutationOfItsOwn(self, size):
    order = _Order([7, size, 3])
    passes = _Elements(order, [1] * 6 * size, np.arange(6 * size))
    passes = passes.reshape([6, size])
    self.assertAllEqual(np.sort(passes, 1), [np.arange(size)] * 6)
    if size > 90:
      for a in range(6):
        for b in range(a):
          # Of two random permutations, one place on average is the same.
          self.assertLess((passes[a] == passes[b]).sum(), 10)

  def testSetsSeedsAndPlacesCanBeMixed(self):
    order = _Order([50, 50])
    numbers = [3, 49, 50, 10**12, 3]
    sets = [0, 1, 0, 1, 1]
    found = _Elements(order, sets, numbers)
    for i in range(5):
      self.assertEqual(
        found[i], _Elements(order, sets[i : i + 1], numbers[i : i + 1])[0]
      )
    whole = np.arange(50)
    first = _Elements(order, [0] * 50, whole)
    self.assertNotAllEqual(first, _Elements(order, [1] * 50, whole))
    self.assertNotAllEqual(
      first, _Elements(_Order([50, 50], 2), [0] * 50, whole)
    )

  def testPlacesAreAllAlikeLikely(self):
    # Where element 0 of 16 is, in 4,000 passes, and what comes after it.
    size, count = 16, 4000
    found = _Elements(
      _Order([size]), [0] * size * count, np.arange(size * count)
    )
    passes = found.reshape([count, size])
    expected = count / size
    places = np.bincount(np.argwhere(passes == 0)[:, 1], minlength=size)
    self.assertLess(((places - expected) ** 2 / expected).sum(), 45)
    after = passes[:, 1:][passes[:, :-1] == 0]
    seen = np.bincount(after, minlength=size)[1:]
    expected = len(after) / (size - 1)
    self.assertLess(((seen - expected) ** 2 / expected).sum(), 45)

  def testPrimes(self):
    primes = repeated_order._Primes()
    self.assertGreater(len(primes), 2000)
    self.assertGreater(primes.min(), 2**31)
    for prime in primes[:: len(primes) // 20].tolist():
      self.assertTrue(all(prime % i for i in range(2, int(prime**0.5) + 1)))


if __name__ == '__main__':
  tf.test.main()
