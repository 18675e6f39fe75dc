"""Tests of sources."""

import os
import subprocess
import sys

from absl.testing import absltest, parameterized

from lingvo_gpipe import child_process, user_error
from tasks.mt import parallel_text, sources, test_catalogues

Pair = parallel_text.Pair


class SourcesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir()

  def _File(self, name, content):
    return self._folder.create_file(name, content).full_path

  def _Read(self, source):
    opened = sources.Open(source)
    return list(opened.pairs), opened.is_user_interface

  def testTsv(self):
    german = self._File('a/de.tsv', 'yes\tja\n')
    french = self._File('a/x.fr.tsv', 'yes\toui\n')
    self._File('a/notes.txt', '')
    more = self._File('more.tsv', 'no\tnei\tnb\n')
    pairs = [Pair('de', 'yes', 'ja'), Pair('fr', 'yes', 'oui')]
    self.assertEqual(
      self._Read(f'tsv:{german},{french}'),
      (pairs, False),
    )
    self.assertEqual(
      self._Read(f'tsv:{more},{os.path.dirname(german)}'),
      ([Pair('nb', 'no', 'nei'), *pairs], False),
    )

  def testPair(self):
    names = [
      self._File(name, f'{name}\n') for name in ('x.de', 'x.en', 'y.en', 'y.fr')
    ]
    self.assertEqual(
      self._Read(f'pair:{",".join(names)}'),
      ([Pair('de', 'x.en', 'x.de'), Pair('fr', 'y.en', 'y.fr')], False),
    )

  def testCatalogues(self):
    path = os.path.join(self._folder.full_path, 'pl/LC_MESSAGES/vlc.mo')
    test_catalogues.Write(path, {'Play': 'Graj'})
    self.assertEqual(
      self._Read(f'vlc:{self._folder.full_path}'),
      ([Pair('pl', 'Play', 'Graj')], True),
    )
    self.assertTrue(sources.Open('django').is_user_interface)

  @parameterized.parameters(
    ('', '--source is missing; .* tsv:FILE.*--source=django needs no data'),
    ('djago', "--source=djago is not known; did you mean 'django'"),
    ('django:x', '--source=django:x: write it django$'),
    ('tsv', '--source=tsv: write it tsv:FILE_OR_FOLDER'),
    ('tsv:', '--source=tsv:: write it tsv:FILE_OR_FOLDER'),
    ('tsv:/none/de.tsv', '--source: there is no file /none/de.tsv'),
    ('tsv:/proc/self/fd', 'tsv:/proc/self/fd: no [*].tsv in this folder'),
    ('pair:/none/x.de,/none/x.en', '--source: there is no file /none/x.de'),
    ('pair:x.de', 'names 1 files'),
    ('vlc:/none', 'no [*]/LC_MESSAGES/vlc.mo in /none'),
  )
  def testMistakes(self, source, problem):
    with self.assertRaisesRegex(user_error.UserError, problem):
      sources.Open(source)

  def testNeedsNoTensorFlow(self):
    code = (
      'import sys; sys.modules["tensorflow"] = None; '
      "from tasks.mt import sources; sources.Open('django')"
    )
    subprocess.run(
      [sys.executable, '-c', code],
      check=True,
      env=child_process.Environment(),
    )


if __name__ == '__main__':
  absltest.main()
