"""Tests of greedy search."""

import tensorflow as tf

from lingvo_gpipe.decoding import greedy, test_model

_END = test_model.END


class GreedyTest(tf.test.TestCase):
  def testGreedyTakesTheBestToken(self):
    limits = [6, 2, 9]
    table = test_model.Table(3, seed=3)
    model = test_model.Model(table, 1)
    found = greedy.Search(
      model.Extend,
      model.States(),
      tf.constant(limits),
      test_model.RULES,
      tf.float64,
    )
    self.assertEqual(found.ids.shape, (3, 1, 9))
    for row, limit in enumerate(limits):
      state, last, expected = 0, test_model.FIRST, []
      while last != _END:
        step = len(expected)
        state = (3 * state + last + 1) % 7
        scores = table.numpy()[row, step % 7, state]
        choices = (
          (test_model.END,) if step + 1 == limit else (test_model.END, 3, 4)
        )
        last = max(choices, key=lambda c: scores[c])
        expected.append(last)
      length = int(found.lengths[row, 0])
      self.assertSequenceEqual(
        list(found.ids[row, 0, :length].numpy()), expected
      )
      self.assertAllClose(
        found.log_probs[row, 0],
        test_model.LogProb(table.numpy(), row, expected),
        rtol=1e-12,
      )


if __name__ == '__main__':
  tf.test.main()
