"""Tests of preparation, from files of text to files of records."""

import hashlib
import itertools
import json
import os
import random

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import user_error
from tasks.mt import (
  near_duplicates,
  preparation,
  preparation_options,
  test_records,
  vocabulary,
)

_SYLLABLES = ['ba', 'do', 'ki', 'lu', 'me', 'no', 'pa', 'ri', 'su', 'te', 'vi']


def _Rows(languages=('de', 'fr', 'pt_BR')):
  """Lines of a .tsv, of 300 sentences, in so many invented languages."""
  rng = random.Random(1)
  words = [''.join(x) for x in itertools.product(_SYLLABLES, repeat=2)]
  for _ in range(300):
    chosen = rng.sample(words, 4)
    source = ' '.join(chosen)
    for language in languages:
      suffix = language.lower()[:2]
      target = ' '.join(f'{x}{suffix}' for x in reversed(chosen))
      yield f'{source}\t{target}\t{language}\n'


def _Contents(folder):
  contents = {}
  for name in sorted(os.listdir(folder)):
    with open(os.path.join(folder, name), 'rb') as f:
      contents[name] = hashlib.sha256(f.read()).hexdigest()
  return contents


class PreparationTest(tf.test.TestCase, parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._root = self.create_tempdir().full_path

  def _Options(self, rows=None, output='data', **kwargs):
    source = self.create_tempfile(
      'all.tsv', ''.join(_Rows() if rows is None else rows)
    ).full_path
    kwargs = {'vocab_size': 400, 'min_pairs': 50, **kwargs}
    return preparation_options.Options(
      source=f'tsv:{source}',
      output=os.path.join(self._root, output),
      **kwargs,
    )

  def testAllThatIsWritten(self):
    lines = []
    options = self._Options([*_Rows(), 'one\teen\tnl\n', 'two\ttwo\tde\n'])
    index = preparation.Prepare(options, lines.append)
    with open(os.path.join(options.output, 'data.json'), encoding='utf-8') as f:
      self.assertEqual(json.load(f), index)
    vocab = vocabulary.Vocabulary.Read(
      os.path.join(options.output, index['vocab'])
    )
    self.assertEqual(index['format'], 1)
    self.assertEqual(index['vocab_size'], 400)
    self.assertEqual(vocab.size, 400)
    self.assertEqual(index['vocab_sha256'], vocab.sha256)
    self.assertEqual(index['tags'], {'en': 4, 'de': 5, 'fr': 6, 'pt_BR': 7})
    self.assertEqual(list(index['languages']), ['de', 'fr', 'pt_BR'])
    self.assertEqual(index['read'], 902)
    self.assertEqual(index['dropped'], {'untranslated': 1})
    self.assertEqual(list(index['left_out']), ['nl'])
    self.assertIn('read 902 pairs; cleaning', lines)
    self._CheckRecords(options.output, index, vocab)
    expected = {'data.json', 'vocab.model', *index['counts']}
    for files in index['text'].values():
      expected |= set(files.values())
    self.assertEqual(set(os.listdir(options.output)), expected)
    self.assertEqual(os.listdir(self._root), ['data'])

  def _CheckRecords(self, folder, index, vocab):
    sides = {}
    groups = {'de', 'fr', 'pt_BR', 'de-en', 'fr-en', 'pt_BR-en'}
    for split, files in index['files'].items():
      self.assertEqual(set(files), groups)
      for group, shards in files.items():
        records = list(test_records.Read(folder, shards))
        language = group.removesuffix('-en')
        self.assertLen(records, index['languages'][language][split])
        self.assertLen(records, sum(index['counts'][x] for x in shards))
        for source, target in records:
          wanted = 'en' if group.endswith('-en') else language
          self.assertEqual(source[0], vocab.TagId(wanted))
          texts = vocab.Decode(source), vocab.Decode(target)
          english = texts[group.endswith('-en')]
          sides.setdefault(split, set()).add(near_duplicates.Words(english))
          suffix = language.lower()[:2]
          self.assertEqual(
            texts[not group.endswith('-en')],
            ' '.join(f'{x}{suffix}' for x in reversed(english.split())),
          )
    # No text of one side is near one of another, in whatever language.
    for one, other in itertools.combinations(sides.values(), 2):
      for a, b in itertools.product(one, other):
        self.assertLess(len(a & b), 0.6 * len(a | b))

  def testIsTheSameEachTime(self):
    options = [self._Options(output=x) for x in ('a', 'b')]
    for x in options:
      preparation.Prepare(x)
    a, b = (_Contents(x.output) for x in options)
    # data.json has the name of the source.
    self.assertNotEqual(a.pop('data.json'), '')
    b.pop('data.json')
    self.assertEqual(a, b)

  def testAGivenVocabulary(self):
    first = self._Options(output='a')
    old = preparation.Prepare(first)
    vocab = os.path.join(first.output, 'vocab.model')
    index = preparation.Prepare(
      self._Options(_Rows(['de']), output='b', vocab=vocab, directions='xx-en')
    )
    self.assertEqual(index['vocab_sha256'], old['vocab_sha256'])
    self.assertEqual(index['tags'], old['tags'])
    self.assertEqual(list(index['files']['train']), ['de-en'])
    with self.assertRaisesRegex(
      user_error.UserError, f'--vocab={vocab} has no tags for it, nl; name'
    ):
      preparation.Prepare(
        self._Options(_Rows(['nl', 'de', 'it']), output='c', vocab=vocab)
      )
    self.assertFalse(os.path.exists(os.path.join(self._root, 'c')))

  def testTheVocabularyKnowsNoTestText(self):
    def _Prepare(output, rows):
      return preparation.Prepare(self._Options(rows, output))

    rows = list(_Rows(['de']))
    index = _Prepare('a', rows)
    path = os.path.join(self._root, 'a', index['text']['test']['de'])
    with open(path, encoding='utf-8') as f:
      held_out = {x.split('\t')[0] for x in f}
    changed = [
      x.replace('\t', '\tqqq zzz ', 1) if x.split('\t')[0] in held_out else x
      for x in rows
    ]
    self.assertEqual(
      _Prepare('b', changed)['vocab_sha256'], index['vocab_sha256']
    )

  def testLanguages(self):
    index = preparation.Prepare(
      self._Options(languages=['pt-BR', 'de'], directions='en-xx')
    )
    self.assertEqual(list(index['languages']), ['de', 'pt_BR'])
    self.assertEqual(index['tags'], {'en': 4, 'de': 5, 'pt_BR': 6})
    self.assertEqual(index['dropped'], {'not in --languages': 300})
    self.assertEqual(list(index['files']['test']), ['de', 'pt_BR'])

  @parameterized.parameters(
    ({'languages': ['pt']}, "source has no 'pt'; did you mean 'pt_BR'"),
    ({'languages': ['Deutsch']}, "--languages: 'Deutsch' is no language code"),
    (
      {'min_pairs': 1000},
      'no language has --min_pairs=1000 .* de has the most',
    ),
    ({'vocab_size': 9000}, '--vocab_size=9000 is more than this text yields'),
    ({'vocab': '/none.model'}, 'No such file.*/none.model'),
    ({'test_share': 1e-9}, 'no pair falls into test: .*--test_share=1e-09'),
    ({'rows': ['a\ta\tde\n']}, 'no language has .* none has the most, 0'),
    ({'rows': []}, 'all.tsv is empty'),
  )
  def testMistakes(self, kwargs, problem):
    with self.assertRaisesRegex(user_error.UserError, problem):
      preparation.Prepare(self._Options(**kwargs))
    self.assertEmpty(os.listdir(self._root))


if __name__ == '__main__':
  tf.test.main()
