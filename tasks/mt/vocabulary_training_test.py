"""Tests of vocabulary_training."""

import re

from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.mt import test_vocabulary, vocabulary_training

_TEXTS, _LANGUAGES = test_vocabulary.TEXTS, test_vocabulary.LANGUAGES


class VocabularyTrainingTest(absltest.TestCase):
  def testIsTheSameEachTime(self):
    again = vocabulary_training.Train(iter(_TEXTS), _LANGUAGES, vocab_size=312)
    self.assertEqual(again.sha256, test_vocabulary.Get().sha256)

  def testLearnsWords(self):
    vocab = test_vocabulary.Get()
    self.assertLess(len(vocab.Encode(_TEXTS[0])), 0.75 * len(_TEXTS[0]))

  def testTagsInTextAreText(self):
    vocab = vocabulary_training.Train(
      [f'{x} <2de>\u2581' for x in _TEXTS], _LANGUAGES, vocab_size=312
    )
    self.assertEqual(vocab.Decode(vocab.Encode('a <2de>')), 'a <2de>')
    self.assertNotIn(5, vocab.Encode('a <2de>'))

  def testTooLarge(self):
    with self.assertRaisesRegex(
      user_error.UserError, '--vocab_size=64000 is more than this text yields'
    ) as caught:
      vocabulary_training.Train(_TEXTS, _LANGUAGES, vocab_size=64000)
    self.assertNotIn('INTERNAL', str(caught.exception))
    largest = int(re.search(r'use (\d+) or less', str(caught.exception))[1])
    vocab = vocabulary_training.Train(_TEXTS, _LANGUAGES, vocab_size=largest)
    self.assertEqual(vocab.size, largest)

  def testTooSmall(self):
    with self.assertRaisesRegex(
      user_error.UserError, '--vocab_size=100 is too small for'
    ) as caught:
      vocabulary_training.Train(_TEXTS, _LANGUAGES, vocab_size=100)
    least = int(re.search(r'use (\d+) or more', str(caught.exception))[1])
    vocab = vocabulary_training.Train(_TEXTS, _LANGUAGES, vocab_size=least)
    self.assertEqual(vocab.size, least)

  def testOtherProblems(self):
    with self.assertRaisesRegex(
      user_error.UserError, '--vocab_size=300: SentencePiece could not learn'
    ):
      vocabulary_training.Train([], _LANGUAGES, vocab_size=300)


if __name__ == '__main__':
  absltest.main()
