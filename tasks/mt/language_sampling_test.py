"""Tests of language_sampling."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.mt import language_sampling


def _Turns(start, count, shares, phases):
  found = language_sampling.Turns(
    tf.constant(start, tf.int64),
    tf.constant(count, tf.int64),
    tf.constant(shares, tf.float64),
    tf.constant(phases, tf.float64),
  )
  return [x.numpy() for x in found]


def _Shares(kinds, seed=0):
  counts = np.random.default_rng(seed).integers(1, 10_000, kinds)
  shares = counts * language_sampling.Rates(counts, 5.0)
  return shares / shares.sum()


class LanguageSamplingTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(1.0, 1.43, 5.0, 100.0)
  def testRates(self, temperature):
    counts = np.array([10, 500, 100_000])
    shares = counts * language_sampling.Rates(counts, temperature)
    expected = (counts / counts.sum()) ** (1 / temperature)
    self.assertAllClose(
      shares / shares.sum(), expected / expected.sum(), rtol=1e-12
    )

  def testPhases(self):
    phases = language_sampling.Phases('a', 1, 100)
    self.assertAllInRange(phases, 0.0, 1.0, open_upper_bound=True)
    self.assertLen(set(phases), 100)
    self.assertAllEqual(phases[:7], language_sampling.Phases('a', 1, 7))
    self.assertNotEqual(phases[0], language_sampling.Phases('a', 2, 1)[0])
    self.assertNotEqual(phases[0], language_sampling.Phases('b', 1, 1)[0])

  @parameterized.parameters(1, 2, 7, 188)
  def testTurnsComeInTheOrderOfTheirTimes(self, kinds):
    shares = _Shares(kinds)
    phases = language_sampling.Phases('x', kinds, kinds)
    number = np.arange(3000)
    times = ((number + phases[:, np.newaxis]) / shares[:, np.newaxis]).ravel()
    order = np.argsort(times, kind='stable')[:2500]
    kind, number = np.divmod(order, 3000)
    for start, count in ((0, 2500), (0, 1), (17, 1), (900, 333), (2499, 1)):
      found = _Turns(start, count, shares, phases)
      self.assertAllEqual(found[0], kind[start : start + count])
      self.assertAllEqual(found[1], number[start : start + count])

  @parameterized.parameters(0, 10**6, 10**12)
  def testAnyPlaceCanBeAskedFor(self, start):
    shares = _Shares(50)
    phases = language_sampling.Phases('x', 1, 50)
    whole = _Turns(start, 1000, shares, phases)
    for first in (1, 500, 999):
      part = _Turns(start + first, 1000 - first, shares, phases)
      self.assertAllEqual(part[0], whole[0][first:])
      self.assertAllEqual(part[1], whole[1][first:])
    # Up to here, each kind has had its share.
    last = {k: n for k, n in zip(*whole, strict=True)}
    for kind, number in last.items():
      expected = (start + 1000) * shares[kind]
      self.assertLess(abs(number + 1 - expected), 2.5 + 1000 * shares[kind])

  def testSharesAreExact(self):
    shares = _Shares(188)
    kinds, numbers = _Turns(
      0, 100_000, shares, language_sampling.Phases('x', 1, 188)
    )
    counts = np.bincount(kinds, minlength=188)
    self.assertAllClose(counts, 100_000 * shares, rtol=0, atol=2)
    for kind in range(188):
      self.assertAllEqual(numbers[kinds == kind], np.arange(counts[kind]))


if __name__ == '__main__':
  tf.test.main()
