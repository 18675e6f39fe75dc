"""Tests of text_escape."""

import itertools

from absl.testing import absltest

from tasks.mt import text_escape

_TAGS = ['<2de>', '<2sr@latin>', '<2pt_BR>']


class TextEscapeTest(absltest.TestCase):
  def testAnyTextComesBack(self):
    escape = text_escape.TextEscape(_TAGS)
    parts = ['<', '2de>', '<2de>', '\u2581', '\ufdd0', '0', '1', '2', 'a ']
    texts = set()
    for chosen in itertools.product(parts, repeat=4):
      text = ''.join(chosen)
      escaped = escape.Escape(text)
      self.assertEqual(escape.Restore(escaped), text)
      self.assertNotIn('<2de>', escaped)
      self.assertNotIn('\u2581', escaped)
      texts.add((text, escaped))
    self.assertLen({x for _, x in texts}, len(texts))

  def testOrdinaryTextStays(self):
    escape = text_escape.TextEscape(_TAGS)
    for text in ('', 'x <2 and 3>', '<2fr>', '2de>', '<a href="x">'):
      self.assertEqual(escape.Escape(text), text)
    self.assertNotEqual(escape.Escape('<2sr@latin>'), '<2sr@latin>')

  def testNoTags(self):
    escape = text_escape.TextEscape([])
    self.assertEqual(escape.Escape('<2de>'), '<2de>')
    self.assertEqual(escape.Restore(escape.Escape('\u2581')), '\u2581')


if __name__ == '__main__':
  absltest.main()
