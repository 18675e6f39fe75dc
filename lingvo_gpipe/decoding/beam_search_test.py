"""Tests of beam search, against exhaustive and greedy search."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe.decoding import beam_search, test_model


def _Exhaustive(table, row, limit, alpha):
  """All sequences and their scores, the best first."""
  found = []
  for length in range(1, limit + 1):
    for body in itertools.product((3, 4), repeat=length - 1):
      sequence = (*body, test_model.END)
      log_prob = test_model.LogProb(table, row, sequence)
      found.append((log_prob / ((5 + length) / 6) ** alpha, sequence))
  return sorted(found, reverse=True)


def _Beam(table, limits, beam, alpha):
  model = test_model.Model(table, beam)
  return beam_search.Search(
    model.Extend,
    model.States(),
    tf.constant(limits),
    test_model.RULES,
    beam_size=beam,
    alpha=alpha,
    dtype=tf.float64,
  )


class BeamSearchTest(parameterized.TestCase, tf.test.TestCase):
  @parameterized.parameters(0.0, 0.6, 1.5)
  def testWideBeamIsExhaustive(self, alpha):
    limits = [5, 1, 3, 4]
    table = test_model.Table(4)
    found = tf.function(_Beam, autograph=False)(table, limits, 32, alpha)
    for row, limit in enumerate(limits):
      expected = _Exhaustive(table.numpy(), row, limit, alpha)
      count = min(len(expected), 32)
      self.assertAllClose(
        found.scores[row, :count], [s for s, _ in expected[:count]], rtol=1e-12
      )
      for i in range(count):
        length = int(found.lengths[row, i])
        self.assertSequenceEqual(
          list(found.ids[row, i, :length].numpy()), expected[i][1]
        )
        self.assertAllEqual(found.ids[row, i, length:], [0] * (5 - length))
      self.assertAllEqual(found.lengths[row, count:], [0] * (32 - count))

  @parameterized.parameters(2, 3)
  def testScoresAreThoseOfTheSequences(self, beam):
    limits = [9, 12, 7]
    table = test_model.Table(3, seed=1)
    found = _Beam(table, limits, beam, 0.6)
    for row, i in itertools.product(range(3), range(beam)):
      length = int(found.lengths[row, i])
      self.assertBetween(length, 1, limits[row])
      sequence = found.ids[row, i, :length].numpy()
      self.assertEqual(sequence[-1], test_model.END)
      self.assertNoCommonElements(sequence, test_model.RULES.forbidden)
      log_prob = test_model.LogProb(table.numpy(), row, sequence)
      self.assertAllClose(found.log_probs[row, i], log_prob, rtol=1e-12)
      self.assertAllClose(
        found.scores[row, i], log_prob / ((5 + length) / 6) ** 0.6, rtol=1e-12
      )
    scores = found.scores.numpy()
    self.assertAllEqual(scores, -np.sort(-scores, 1))

  def testRowsDoNotDependOnEachOther(self):
    limits = [3, 14, 8, 11, 2, 9]
    table = test_model.Table(6, seed=2)
    together = _Beam(table, limits, 3, 0.8)
    for row, limit in enumerate(limits):
      alone = _Beam(table[row : row + 1], [limit], 3, 0.8)
      self.assertAllEqual(together.ids[row, :, :limit], alone.ids[0])
      self.assertAllEqual(together.scores[row], alone.scores[0])

  def testBadSettings(self):
    with self.assertRaisesRegex(ValueError, 'beam_size=0 must be'):
      _Beam(test_model.Table(1), [2], 0, 0.0)
    with self.assertRaisesRegex(ValueError, 'length_penalty=-1.0 must be'):
      _Beam(test_model.Table(1), [2], 1, -1.0)


if __name__ == '__main__':
  tf.test.main()
