"""Tests of the report of scores."""

from __future__ import annotations

import json

from absl.testing import absltest

from tasks.mt import scores
from tools.mt import score_report


def Direction(group, pairs, chrf, amount='low', kind='en_xx', **kwargs):
  """A direction of 60 sentences with a memory of chrF 30."""
  values = {
    'group': group,
    'kind': kind,
    'language': group.removesuffix('-en'),
    'training_pairs': pairs,
    'amount': amount,
    'sentences': 60,
    'score': scores.Score(chrf, chrf / 2, 60),
    'baselines': {
      'memory': score_report.Compared(scores.Score(30, 20, 60), chrf - 30)
    },
  }
  return score_report.Direction(**{**values, **kwargs})


def _Lines(*directions):
  return score_report.Lines(directions, min_sentences=50)


class ScoreReportTest(absltest.TestCase):
  def testTable(self):
    lines = _Lines(
      Direction('ru', 1200, 40.04, 'medium'),
      Direction('de', 4000, 28, 'high'),
      Direction('ru-en', 1200, 36, 'medium', 'xx_en', baselines={}),
      Direction('fr', 4100, 32, 'high', on_target=0.75, identified=0.9),
    )
    table = [x.split() for x in lines]
    start = lines.index('Translations from English:')
    self.assertEqual(
      lines[start + 1].split(),
      'language pairs data sentences chrF BLEU memory chrF difference '
      'on target of references'.split(),
    )
    self.assertEqual(
      table[start + 2 : start + 8],
      [
        x.split()
        for x in (
          'fr 4,100 high 60 32.0 16.0 30.0 +2.0 75% 90%',
          'de 4,000 high 60 28.0 14.0 30.0 -2.0 - -',
          'ru 1,200 medium 60 40.0 20.0 30.0 +10.0 - -',
          'mean of 2 high 120 30.0 15.0 30.0 +0.0 75% 90%',
          'mean of 1 medium 60 40.0 20.0 30.0 +10.0 - -',
          'mean of 3 all 180 33.3 16.7 30.0 +3.3 75% 90%',
        )
      ],
    )
    start = lines.index('Translations into English:')
    self.assertEqual(
      table[start + 2], 'ru 1,200 medium 60 36.0 18.0 - - - -'.split()
    )
    self.assertTrue(any(x.startswith('chrF: nrefs:1|') for x in lines))

  def testFewSentencesAreMarked(self):
    few = scores.Score(40, 20, 49)
    lines = _Lines(Direction('ru', 12, 40, score=few, sentences=49))
    self.assertIn('49*', lines[3].split())
    self.assertTrue(any(x.startswith('* fewer than 50') for x in lines))
    lines = _Lines(Direction('ru', 12, 40))
    self.assertNotIn('*', '\n'.join(lines))

  def testMissingSentences(self):
    self.assertNotIn('missing', '\n'.join(_Lines(Direction('a', 1, 40))))
    lines = _Lines(
      *(Direction(f'x{i}', 9 - i, 40, sentences=100) for i in range(7))
    )
    (missing,) = [x for x in lines if x.startswith('missing')]
    self.assertStartsWith(missing, 'missing: 280 sentences are not translated')
    self.assertEndsWith(
      missing,
      'x0 60 of 100, x1 60 of 100, x2 60 of 100, '
      'x3 60 of 100, x4 60 of 100 and 2 more',
    )

  def testJson(self):
    values = score_report.ToJson(
      [
        Direction('ru', 12, 40),
        Direction('de', 40, 20, 'high', on_target=0.5, identified=1.0),
        Direction('ru-en', 12, 36, kind='xx_en', baselines={}),
      ]
    )
    self.assertEqual(json.loads(json.dumps(values)), values)
    self.assertEqual(list(values['directions']), ['de', 'ru', 'ru-en'])
    self.assertEqual(
      values['directions']['de'],
      {
        'training_pairs': 40,
        'amount': 'high',
        'sentences': 60,
        'translated': 60,
        'chrf': 20,
        'bleu': 10,
        'memory': 30,
        'memory_difference': -10,
        'on_target': 0.5,
        'identified': 1.0,
      },
    )
    self.assertEqual(
      values['means']['en_xx']['all'],
      {
        'directions': 2,
        'sentences': 120,
        'chrf': 30,
        'bleu': 15,
        'memory': 30,
        'memory_difference': 0,
        'on_target': 0.5,
        'identified': 1.0,
      },
    )
    self.assertEqual(
      values['means']['xx_en']['all'],
      {'directions': 1, 'sentences': 60, 'chrf': 36, 'bleu': 18},
    )


if __name__ == '__main__':
  absltest.main()
