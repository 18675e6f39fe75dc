"""Tests of gettext_text."""

import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import gettext_text, parallel_text, test_catalogues

_MESSAGES = {
  'Save': 'Zapisz',
  'Open': '',
  'month\4May': 'maj',
  '%d file\0%d files': '%d plik\0%d pliki\0%d plików',
  'disk\4a file\0files': 'plik\0pliki\0plików',
  'half\0halves': 'połowa\0\0',
}


class GettextTextTest(parameterized.TestCase):
  def _Path(self, content=b''):
    return self.create_tempfile('pl.mo', content, mode='wb').full_path

  @parameterized.parameters('<', '>')
  def testReads(self, order):
    path = self._Path()
    test_catalogues.Write(path, _MESSAGES, order=order)
    pairs = list(gettext_text.ReadCatalogue(path, 'pl'))
    self.assertCountEqual(
      pairs,
      [
        parallel_text.Pair('pl', *x)
        for x in (
          ('Save', 'Zapisz'),
          ('May', 'maj'),
          ('%d file', '%d plik'),
          # The form of 100, not that of 2 to 4.
          ('%d files', '%d plików'),
          ('a file', 'plik'),
          ('files', 'plików'),
          ('half', 'połowa'),
        )
      ],
    )

  def testOtherCharset(self):
    path = self._Path()
    test_catalogues.Write(path, {'Save': 'Zapisz'}, head='Language: pl\n')
    (pair,) = gettext_text.ReadCatalogue(path, 'pl')
    self.assertEqual(pair.target, 'Zapisz')

  def testMistakes(self):
    path = self._Path()
    test_catalogues.Write(path, _MESSAGES)
    with open(path, 'rb') as f:
      content = f.read()
    head = test_catalogues.POLISH
    for wrong in (b'', b'no catalogue of gettext', content[:60], content[:20]):
      with self.assertRaisesRegex(user_error.UserError, 'pl.mo is no catalogu'):
        list(gettext_text.ReadCatalogue(self._Path(wrong), 'pl'))
    for wrong in (
      head.replace('UTF-8', 'klingon'),
      head.replace('UTF-8', 'ascii'),
      head.replace('n==1', 'open(n)'),
    ):
      test_catalogues.Write(path, _MESSAGES, head=wrong)
      with self.assertRaisesRegex(user_error.UserError, 'pl.mo is no catalogu'):
        list(gettext_text.ReadCatalogue(path, 'pl'))
    with self.assertRaisesRegex(user_error.UserError, 'Not a directory'):
      list(gettext_text.ReadCatalogue(os.path.join(path, 'x'), 'pl'))


if __name__ == '__main__':
  absltest.main()
