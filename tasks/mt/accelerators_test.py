"""Tests of accelerators."""

from absl.testing import absltest, parameterized

from tasks.mt import accelerators


class AcceleratorsTest(parameterized.TestCase):
  @parameterized.parameters(
    (
      '&Open File...',
      '&Ouvrir un fichier…',
      'Open File...',
      'Ouvrir un fichier…',
    ),
    ('E&xit', 'Beenden', 'Exit', 'Beenden'),
    ('Co&dec', 'Co&dec', 'Codec', 'Codec'),
    ('&Quit', '終了 (&Q)', 'Quit', '終了'),
    ('&Quit...', '終了(&Q)...', 'Quit...', '終了...'),
    ('_File', '_Datei', 'File', 'Datei'),
    ('_OK', '_OK', 'OK', 'OK'),
    ('Save _As...', 'Speichern _unter …', 'Save As...', 'Speichern unter …'),
    ('E_xit', '終了(_X)', 'Exit', '終了'),
    ('_Add %(a_b)s', '_Dodaj %(a_b)s', 'Add %(a_b)s', 'Dodaj %(a_b)s'),
    ('&Play _this', '_dies &spielen', 'Play this', 'dies spielen'),
  )
  def testRemoves(self, source, target, *expected):
    self.assertEqual(accelerators.Remove(source, target), tuple(expected))

  @parameterized.parameters(
    ('Copy & paste', 'Kopieren & einfügen'),
    ('R&D', 'F&E'),
    ('Questions && answers', 'Fragen && Antworten'),
    ('&copy; &amp; more', '&copy; &amp; mehr'),
    ('&#169; 2020', '&#169; 2020 a'),
    ('a&b&c', 'x'),
    ('Save', '&Speichern & schließen'),
    ('the file_name', 'der file_name'),
    ('VIDEO_TS folder', 'VIDEO_TS-mappe'),
    ('see dir/file_name.html', 'siehe dir/datei_name.html'),
    ('“%(name)s.allow_empty” is False', '“%(name)s.allow_empty” ist False'),
    ('<a target="_blank">', '<a  target="_blank">'),
    ('_File', 'Datei'),
    ('x_1 _', '_ x_1'),
    ('', ''),
  )
  def testLeavesAlone(self, source, target):
    self.assertEqual(accelerators.Remove(source, target), (source, target))


if __name__ == '__main__':
  absltest.main()
