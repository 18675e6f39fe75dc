"""Tests of cleaning."""

import unicodedata

from absl.testing import absltest

from tasks.mt import catalogues, cleaning, gettext_text, parallel_text

Pair = parallel_text.Pair


def _Clean(*texts, **kwargs):
  pairs = [Pair('de', *x) for x in texts]
  kept, dropped = cleaning.Clean(pairs, **kwargs)
  return [x[1:3] for x in kept], dict(dropped)


class CleaningTest(absltest.TestCase):
  def testText(self):
    self.assertEqual(cleaning.Text(' a\tb\r\n\u00a0c \u3000d '), 'a b c d')
    self.assertEqual(cleaning.Text('u\u0308'), '\u00fc')
    # NFC, not NFKC; and joiners belong to the script.
    self.assertEqual(cleaning.Text('ﬁ ½ ｘ می\u200cروم'), 'ﬁ ½ ｘ می\u200cروم')

  def testDrops(self):
    kept, dropped = _Clean(
      ('yes', 'ja'),
      ('yes ', ' ja'),
      ('yes', 'jawohl'),
      ('', 'nichts'),
      ('nothing', ' \n'),
      ('bell', 'Gl\aocke'),
      ('broken', 'kap\ufffdutt'),
      ('surrogate', 'halb\ud800'),
      ('same', ' same'),
      ('%s files', '%d Dateien'),
      ('%s of %s', '%2$s von %1$s'),
      ('a &amp; b', 'c &amp; d'),
    )
    self.assertEqual(
      kept,
      [
        ('yes', 'ja'),
        ('yes', 'jawohl'),
        ('%s of %s', '%2$s von %1$s'),
        ('a &amp; b', 'c &amp; d'),
      ],
    )
    self.assertEqual(
      dropped,
      {
        cleaning.DUPLICATE: 1,
        cleaning.EMPTY: 2,
        cleaning.CONTROL: 3,
        cleaning.UNTRANSLATED: 1,
        cleaning.PLACEHOLDERS: 1,
      },
    )

  def testDuplicatesAreOfALanguage(self):
    pairs = [Pair('de', 'Hand', 'Hände'), Pair('nds', 'Hand', 'Hände')]
    self.assertEqual(cleaning.Clean(pairs)[0], pairs)

  def testAccelerators(self):
    self.assertEqual(_Clean(('&Save', '&Ja'))[0], [('&Save', '&Ja')])
    kept, dropped = _Clean(
      ('&Save', '&Ja'), ('Save', 'Ja'), ('&Ok', 'Ok'), is_user_interface=True
    )
    self.assertEqual(kept, [('Save', 'Ja')])
    self.assertEqual(dropped, {cleaning.DUPLICATE: 1, cleaning.UNTRANSLATED: 1})

  def testLengthsAreThoseOfTheLanguage(self):
    # A language of a third of the length, and one of equal length.
    text = 'some text of english that is {} letters long, or nearly so'
    pairs = []
    for i in range(9):
      source = text.format(i)
      pairs.append(Pair('zh', source, '字' * (len(source) // 3)))
      pairs.append(Pair('de', source, source.upper()))
    short = Pair('de', 'x' * 60, 'y' * 20)
    long = Pair('zh', 'x' * 60, 'y' * 60)
    kept, dropped = cleaning.Clean([*pairs, short, long])
    self.assertEqual(kept, pairs)
    self.assertEqual(dropped, {cleaning.LENGTH: 2})

  def testRealCatalogues(self):
    pairs = [
      pair
      for x in catalogues.Django()
      if x.language in ('de', 'ja', 'ar')
      for pair in gettext_text.ReadCatalogue(x.path, x.language)
    ]
    kept, dropped = cleaning.Clean(pairs, is_user_interface=True)
    self.assertLen(pairs, len(kept) + sum(dropped.values()))
    self.assertGreater(len(kept), 0.8 * len(pairs))
    for pair in kept:
      for text in (pair.source, pair.target):
        self.assertTrue(unicodedata.is_normalized('NFC', text))
        self.assertNotRegex(text, r'^\s|\s$|\s\s|[^\S ]')
    # What is clean stays as it is.
    again, dropped = cleaning.Clean(kept, is_user_interface=True)
    self.assertEqual(again, kept)
    self.assertEmpty(dropped)


if __name__ == '__main__':
  absltest.main()
