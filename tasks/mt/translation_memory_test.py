"""Tests of the translation memory."""

from __future__ import annotations

from unittest import mock

import numpy as np
from absl.testing import absltest
from sklearn.feature_extraction import text as text_features

from tasks.mt import translation_memory

_SOURCES = ['Open the window', 'Close the door', 'Seven rivers', 'Open a file']
_TARGETS = ['A', 'B', 'C', 'D']


class TranslationMemoryTest(absltest.TestCase):
  def testNearest(self):
    memory = translation_memory.TranslationMemory(_SOURCES, _TARGETS)
    matches = memory.Lookup(
      ['open the windows', 'Close that door', 'seven', 'Open a FILE']
    )
    self.assertEqual([x.target for x in matches], ['A', 'B', 'C', 'D'])
    self.assertAlmostEqual(matches[3].similarity, 1.0, places=6)
    for match in matches[:3]:
      self.assertBetween(match.similarity, 0.3, 0.95)

  def testIsTheCosineOfTfIdf(self):
    (match,) = translation_memory.TranslationMemory(_SOURCES, _TARGETS).Lookup(
      ['Open the files']
    )
    tf_idf = text_features.TfidfVectorizer(
      analyzer='char', ngram_range=(2, 5), sublinear_tf=True
    )
    known = tf_idf.fit_transform([f'\2{x.lower()}\3' for x in _SOURCES])
    query = tf_idf.transform(['\2open the files\3'])
    cosines = (query @ known.T).toarray()[0]
    self.assertEqual(match.target, _TARGETS[cosines.argmax()])
    np.testing.assert_allclose(match.similarity, cosines.max(), rtol=1e-5)

  def testOfEqualOnesTheFirst(self):
    memory = translation_memory.TranslationMemory(['x', 'y', 'y'], _TARGETS[:3])
    (match,) = memory.Lookup(['y'])
    self.assertEqual(match.target, 'B')
    self.assertAlmostEqual(match.similarity, 1.0, places=6)

  def testNothingInCommon(self):
    memory = translation_memory.TranslationMemory(_SOURCES, _TARGETS)
    self.assertEqual(memory.Lookup(['日本', '']), [('日本', 0.0), ('', 0.0)])

  def testInParts(self):
    texts = [f'{x} {i}' for i in range(5) for x in _SOURCES]
    memory = translation_memory.TranslationMemory(_SOURCES, _TARGETS)
    whole = memory.Lookup(texts)
    # Three at once, and one row of similarities though it is too large.
    for cells in (12, 1):
      with mock.patch.object(translation_memory, '_CELLS', cells):
        self.assertEqual(memory.Lookup(texts), whole)
    self.assertEmpty(memory.Lookup([]))

  def testWrongSizes(self):
    with self.assertRaisesRegex(ValueError, '0 sources and 0 targets'):
      translation_memory.TranslationMemory([], [])
    with self.assertRaisesRegex(ValueError, '1 sources and 2 targets'):
      translation_memory.TranslationMemory(['a'], ['b', 'c'])


if __name__ == '__main__':
  absltest.main()
