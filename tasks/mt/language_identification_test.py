"""Tests of the identification of languages, on texts of Django."""

from __future__ import annotations

import gettext
import os

import django
from absl.testing import absltest, parameterized

from tasks.mt import language_identification


def _Texts(language):
  """Translations in Django's own catalogue, longer ones."""
  path = os.path.join(
    os.path.dirname(django.__file__),
    f'conf/locale/{language}/LC_MESSAGES/django.mo',
  )
  with open(path, 'rb') as f:
    catalogue = gettext.GNUTranslations(f)._catalog
  return [
    text
    for key, text in sorted(catalogue.items(), key=lambda x: str(x[0]))
    if key and text != key and len(text) > 20
  ]


class LanguageIdentifierTest(parameterized.TestCase):
  def testFindsTheLanguage(self):
    texts = {x: _Texts(x) for x in ('de', 'nl', 'fr', 'pt_BR', 'ru', 'uk')}
    identifier = language_identification.LanguageIdentifier(
      {language: x[::2] for language, x in texts.items()}
    )
    for language, of_language in texts.items():
      held_out = of_language[1::2]
      self.assertGreater(len(held_out), 50)
      right = identifier.NumIn(held_out, language)
      self.assertGreater(right / len(held_out), 0.85, language)

  def testRegionsAreOneLanguage(self):
    identifier = language_identification.LanguageIdentifier(
      {'es': ['el mundo'], 'es_AR': ['vos sos'], 'de': ['die Welt'], 'x': []}
    )
    self.assertEqual(
      identifier.Identify(['vos', 'mundo', 'Welt']), ['es', 'es', 'de']
    )
    self.assertEqual(identifier.NumIn(['vos', 'mundo', 'Welt'], 'es_MX'), 2)
    self.assertEqual(identifier.Identify([]), [])

  def testHowMuchTextALanguageHasSaysNothing(self):
    identifier = language_identification.LanguageIdentifier(
      {'de': ['aa bb'] * 100, 'fr': ['aa cc']}
    )
    self.assertEqual(identifier.Identify(['cc', 'bb']), ['fr', 'de'])

  @parameterized.parameters(
    ('pt_BR', 'pt'),
    ('es_419', 'es'),
    ('sr_Latn', 'sr_Latn'),
    ('zh_Hant', 'zh_Hant'),
    ('ca_ES@valencia', 'ca@valencia'),
    ('de', 'de'),
  )
  def testWithoutRegion(self, language, expected):
    self.assertEqual(language_identification.WithoutRegion(language), expected)


if __name__ == '__main__':
  absltest.main()
