"""Tests of scores, against numbers worked out here."""

from __future__ import annotations

import collections
import math

from absl.testing import absltest, parameterized

from tasks.mt import scores, translation_file


def _Rows(pairs, source='en', target='de'):
  return [
    translation_file.Translation(
      translation_file.GroupOf(source, target),
      source,
      target,
      i,
      'source',
      reference,
      translation,
    )
    for i, (translation, reference) in enumerate(pairs)
  ]


def _Chrf(pairs, order=6, beta=2):
  """chrF of a set, by its definition."""
  precisions, recalls = [], []
  for n in range(1, order + 1):
    same = of_translations = of_references = 0
    for translation, reference in pairs:
      grams = [
        collections.Counter(
          x.replace(' ', '')[i : i + n]
          for i in range(len(x.replace(' ', '')) - n + 1)
        )
        for x in (translation, reference)
      ]
      same += (grams[0] & grams[1]).total()
      of_translations += grams[0].total()
      of_references += grams[1].total()
    precisions.append(same / of_translations)
    recalls.append(same / of_references)
  p, r = (sum(x) / order for x in (precisions, recalls))
  return 100 * (1 + beta**2) * p * r / (beta**2 * p + r)


class ScoresTest(parameterized.TestCase):
  def testChrf(self):
    pairs = [
      ('Das Haus ist gross', 'Das Haus war gross'),
      ('Ein Fenster und Türen', 'Ein Fenster und die Tür'),
    ]
    score = scores.OfDirection(_Rows(pairs))
    self.assertAlmostEqual(score.chrf, _Chrf(pairs), places=6)
    self.assertEqual(score.sentences, 2)

  def testBleu(self):
    pairs = [('a b c d e', 'a b c d f'), ('g h i j', 'g h i j k')]
    # 1- to 4-grams: 8 of 9, 6 of 7, 4 of 5, 2 of 3... and 9 words for 10.
    precisions = [8 / 9, 6 / 7, 4 / 5, 2 / 3]
    expected = 100 * math.exp(1 - 10 / 9) * math.prod(precisions) ** 0.25
    score = scores.OfDirection(_Rows(pairs))
    self.assertAlmostEqual(score.bleu, expected, places=6)

  def testBleuOfLanguagesWithoutBlanks(self):
    pairs = [('今日は良い天気', '今日は良い天気です')]
    expected = 100 * math.exp(1 - 9 / 7)
    japanese = scores.OfDirection(_Rows(pairs, target='ja'))
    self.assertAlmostEqual(japanese.bleu, expected, places=6)
    # As one word it is right or wrong.
    self.assertEqual(scores.OfDirection(_Rows(pairs, target='de')).bleu, 0)

  def testExtremes(self):
    right = [('eins zwei drei vier', 'eins zwei drei vier')]
    for value in scores.OfDirection(_Rows(right))[:2]:
      self.assertAlmostEqual(value, 100, places=6)
    self.assertEqual(scores.OfDirection(_Rows([('', 'eins zwei')]))[:2], (0, 0))

  @parameterized.parameters(
    ('zh_Hans', 'char'),
    ('zh_TW', 'char'),
    ('ja', 'char'),
    ('th', 'char'),
    ('my', 'char'),
    ('de', 'intl'),
    ('ko', 'intl'),
    ('en', 'intl'),
    ('tha', 'intl'),
    ('sr@latin', 'intl'),
  )
  def testTokenization(self, language, expected):
    self.assertEqual(scores.Tokenization(language), expected)

  def testOneLanguageAtATime(self):
    with self.assertRaisesRegex(ValueError, 'one language'):
      scores.OfDirection([])
    rows = _Rows([('a', 'a')]) + _Rows([('a', 'a')], target='fr')
    with self.assertRaisesRegex(ValueError, 'one language'):
      scores.OfDirection(rows)

  def testSummaryIsAMeanOverDirections(self):
    # Though one direction has more sentences.
    rows = _Rows([('abcdefg', 'abcdefg')] * 9) + _Rows(
      [('xxxxxxx', 'abcdefg')], target='fr'
    )
    summary = scores.Summary(rows)
    self.assertEqual(list(summary), ['chrf', 'bleu'])
    self.assertAlmostEqual(summary['chrf'], 50, places=6)

  def testSummaryOfSeveralKinds(self):
    right, wrong = [('abcdefg', 'abcdefg')], [('xxxxxxx', 'abcdefg')]
    summary = scores.Summary(
      _Rows(right)
      + _Rows(right, target='fr')
      + _Rows(wrong, source='de', target='en')
      + _Rows(wrong, source='de', target='fr')
    )
    for name, expected in (
      ('chrf', 50),
      ('chrf_en_xx', 100),
      ('chrf_xx_en', 0),
      ('chrf_xx_xx', 0),
    ):
      self.assertAlmostEqual(summary[name], expected, places=6, msg=name)
    self.assertLen(summary, 8)

  def testMean(self):
    mean = scores.Mean([scores.Score(10, 4, 2), scores.Score(20, 8, 6)])
    self.assertEqual(mean, (15, 6, 8))
    self.assertTrue(math.isnan(scores.Mean([]).chrf))

  def testSignatures(self):
    signatures = scores.Signatures()
    self.assertContainsSubset({'nc:6', 'nw:0'}, signatures['chrF'].split('|'))
    for tokenization in ('intl', 'char'):
      signature = signatures[f'BLEU, {tokenization}']
      self.assertIn(f'tok:{tokenization}', signature.split('|'))
      self.assertIn('nrefs:1', signature)


if __name__ == '__main__':
  absltest.main()
