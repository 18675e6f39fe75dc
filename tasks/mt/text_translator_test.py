"""Tests of text_translator."""

import dataclasses

from absl.testing import absltest

from lingvo_gpipe import user_error
from tasks.mt import test_vocabulary, text_translator, translation_file


class TextTranslatorTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._vocab = test_vocabulary.Get()
    self._shapes = []

  def _Translator(self, **kwargs):
    def _Copy(inputs, paddings):
      self._shapes.append(tuple(inputs.shape))
      self.assertEqual(inputs.shape, paddings.shape)
      self.assertTrue(((inputs.numpy() == 0) == (paddings.numpy() == 1)).all())
      return inputs  # The tag and the end say nothing.

    return text_translator.TextTranslator(
      self._vocab, _Copy, batch_size=3, **kwargs
    )

  def testLinesKeepTheirOrder(self):
    lines = [
      'ein Haus',
      '',
      'x',
      ('two fish ' * 9).strip(),
      '  ',
      'a b c',
      '<2de> y',
    ]
    found = list(self._Translator().Lines(iter(lines), 'de'))
    self.assertEqual(found, [line.strip() for line in lines])
    # The long line is in a batch of its own length.
    self.assertEqual([rows for rows, _ in self._shapes], [3, 3])
    self.assertTrue(all(length % 16 == 0 for _, length in self._shapes))
    self.assertLess(self._shapes[0][1], self._shapes[1][1])

  def testManyWindows(self):
    lines = [str(i) for i in range(4100)]
    found = self._Translator().Lines(iter(lines), 'en')
    self.assertEqual(list(found), lines)

  def testSentencesIntoSeveralLanguages(self):
    rows = [
      translation_file.Translation(
        language, 'en', language, i, f'text {i}', 'r', 'old', -1.0
      )
      for i, language in enumerate(['de', 'pt_BR', 'de'])
    ]
    found = self._Translator().Sentences(rows)
    self.assertEqual(
      found,
      [dataclasses.replace(x, translation=x.source, score=None) for x in rows],
    )
    # A batch for each language.
    self.assertLen(self._shapes, 2)

  def testErrors(self):
    with self.assertRaisesRegex(
      user_error.UserError, "no language 'dee'; did you mean 'de'"
    ):
      next(self._Translator().Lines(iter(['a']), 'dee'))
    lines = iter(['a', 'two fish ' * 9])
    with self.assertRaisesRegex(
      user_error.UserError, r'^line 2 has \d+ tokens, more than --max_tokens=5'
    ):
      next(self._Translator(max_tokens=5).Lines(lines, 'de'))


if __name__ == '__main__':
  absltest.main()
