"""Tests of catalogues, on Django's own."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import child_process, user_error
from tasks.mt import catalogues, gettext_text, test_catalogues


class CataloguesTest(absltest.TestCase):
  def testDjango(self):
    found = catalogues.Django()
    languages = {x.language for x in found}
    self.assertGreaterEqual(len(languages), 94)
    self.assertContainsSubset({'de', 'pt_BR', 'zh_Hans', 'sr_Latn'}, languages)
    self.assertFalse([x for x in languages if x.startswith('en')])
    self.assertEqual(found, sorted(found, key=lambda x: x.path))
    pairs = {
      (x.source, x.target)
      for path in (x.path for x in found if x.language == 'de')
      for x in gettext_text.ReadCatalogue(path, 'de')
    }
    self.assertContainsSubset(
      {
        ('Enter a valid URL.', 'Bitte eine gültige Adresse eingeben.'),
        ('%(num)d year', '%(num)d Jahr'),
        ('%(num)d years', '%(num)d Jahre'),
      },
      pairs,
    )

  def testDjangoIsNotImported(self):
    code = (
      'import sys; from tasks.mt import catalogues; catalogues.Django(); '
      "assert 'django' not in sys.modules"
    )
    subprocess.run(
      [sys.executable, '-c', code],
      check=True,
      env=child_process.Environment(),
    )

  def testNoDjango(self):
    with mock.patch.object(importlib.util, 'find_spec', return_value=None):
      with self.assertRaisesRegex(
        user_error.UserError, "--source=django: .*run pip install 'django>="
      ):
        catalogues.Django()
    spec = importlib.machinery.ModuleSpec('django', None, is_package=True)
    folder = self.create_tempdir().full_path
    spec.submodule_search_locations = [folder]
    with mock.patch.object(importlib.util, 'find_spec', return_value=spec):
      with self.assertRaisesRegex(
        user_error.UserError, f'{folder} has no locale/.*with pip'
      ):
        catalogues.Django()

  def testVlc(self):
    folder = self.create_tempdir('[x]').full_path
    for language in ('en_GB', 'pl', 'sr@latin', 'pt_BR'):
      test_catalogues.Write(
        os.path.join(
          folder, 'usr/share/locale', language, 'LC_MESSAGES/vlc.mo'
        ),
        {'Play': 'Graj'},
      )
    test_catalogues.Write(
      os.path.join(folder, 'fr/LC_MESSAGES/other.mo'), {'Play': 'Lire'}
    )
    self.assertEqual(
      [x.language for x in catalogues.Vlc(folder)], ['pl', 'pt_BR', 'sr@latin']
    )
    with self.assertRaisesRegex(
      user_error.UserError,
      r'no \*/LC_MESSAGES/vlc.mo in /none; install .*--source=vlc:FOLDER',
    ):
      catalogues.Vlc('/none')


if __name__ == '__main__':
  absltest.main()
