"""Tests of what a search may write."""

import tensorflow as tf

from lingvo_gpipe.decoding import token_rules


class TokenRulesTest(tf.test.TestCase):
  def testAllowed(self):
    rules = token_rules.TokenRules(4, first_id=2, end_id=1, forbidden=(0, 2))
    never = token_rules.IMPOSSIBLE
    scores = tf.constant([[-1.0, -2.0, -3.0, -4.0]] * 2)
    allowed = rules.Allowed(scores, tf.constant(2), tf.constant([4, 3]))
    self.assertAllClose(
      allowed, [[never, -2.0, never, -4.0], [never, -2.0, never, never]]
    )

  def testBadIds(self):
    with self.assertRaisesRegex(ValueError, r'ids \[4\] are outside of a voc'):
      token_rules.TokenRules(4, first_id=2, end_id=1, forbidden=(4,))
    with self.assertRaisesRegex(ValueError, 'end_id=1 cannot be forbidden'):
      token_rules.TokenRules(4, first_id=2, end_id=1, forbidden=(1,))


if __name__ == '__main__':
  tf.test.main()
