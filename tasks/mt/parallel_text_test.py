"""Tests of parallel_text."""

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import parallel_text

Pair = parallel_text.Pair


class ParallelTextTest(parameterized.TestCase):
  def _File(self, name, content):
    if isinstance(content, str):
      content = content.encode()
    return self.create_tempfile(name, content, mode='wb').full_path

  def _Tsv(self, name, content):
    return list(parallel_text.ReadTsv(self._File(name, content)))

  def testLanguages(self):
    for code, name in (
      ('de', 'de'),
      (' pt-BR', 'pt_BR'),
      ('sr@latin', 'sr@latin'),
      ('zh_Hant_TW', 'zh_Hant_TW'),
      ('udm', 'udm'),
    ):
      self.assertEqual(parallel_text.Language(code, 'here'), name)
    for code in ('', 'German', 'd', 'de/../x', 'de en', '<2de>'):
      with self.assertRaisesRegex(
        user_error.UserError, 'here: .* is no language code; expected .* de,'
      ):
        parallel_text.Language(code, 'here')
    with self.assertRaisesRegex(user_error.UserError, "here: 'en-GB' is Engl"):
      parallel_text.Language('en-GB', 'here')

  def testIsEnglish(self):
    self.assertTrue(parallel_text.IsEnglish('en'))
    self.assertTrue(parallel_text.IsEnglish('en_GB'))
    self.assertTrue(parallel_text.IsEnglish('en@shaw'))
    self.assertFalse(parallel_text.IsEnglish('enm'))

  def testTsvWithLanguages(self):
    text = (
      '\ufeffsource\ttarget\tlanguage\r\nyes\tja\tde\r\n\r\n"no\tnon"\tfr\n'
    )
    self.assertEqual(
      self._Tsv('x.tsv', text),
      [Pair('de', 'yes', 'ja'), Pair('fr', '"no', 'non"')],
    )

  def testTsvOfOneLanguage(self):
    expected = [Pair('pt_BR', 'yes', 'sim')]
    self.assertEqual(self._Tsv('pt-BR.tsv', 'yes\tsim'), expected)
    self.assertEqual(self._Tsv('news.pt_BR.tsv', 'yes\tsim\n'), expected)
    self.assertEqual(
      self._Tsv('de.tsv', 'source\ttarget\nyes\tja\n'),
      [Pair('de', 'yes', 'ja')],
    )

  @parameterized.named_parameters(
    ('Empty', 'de.tsv', '', 'de.tsv is empty'),
    ('HeadOnly', 'de.tsv', 'source\ttarget\n', 'de.tsv is empty'),
    (
      'OneColumn',
      'de.tsv',
      'a\tb\nab\n',
      'de.tsv, line 2 has 1 columns; expec',
    ),
    ('FourColumns', 'de.tsv', 'a\tb\tde\td\n', 'line 1 has 4 columns'),
    ('NoLanguage', 'news.tsv', 'a\tb\n', 'line 1 has no third .*news.de.tsv'),
    ('WrongLanguage', 'x.tsv', 'a\tb\tde\na\tb\t7\n', "line 2: '7' is no lang"),
    ('English', 'x.tsv', 'a\tb\ten\n', "line 1: 'en' is English"),
    ('NotUtf8', 'de.tsv', b'a\t\xff\n', "de.tsv: 'utf-8' codec can't decode"),
  )
  def testMistakesInTsv(self, name, content, problem):
    with self.assertRaisesRegex(user_error.UserError, problem):
      self._Tsv(name, content)

  def testFilePair(self):
    # A \r or a line separator inside a sentence ends no line.
    german = self._File('x.de', 'ja\rja\nnein\u2028\nvielleicht')
    english = self._File('x.en', 'yes\r\nno\r\nperhaps\r\n')
    self.assertEqual(
      list(parallel_text.ReadFilePair(german, english)),
      [
        Pair('de', 'yes', 'ja\rja'),
        Pair('de', 'no', 'nein\u2028'),
        Pair('de', 'perhaps', 'vielleicht'),
      ],
    )

  def testMistakesInFilePairs(self):
    english = self._File('x.en', 'yes\nno\nperhaps\n')
    for content, problem in (
      ('ja\nnein\n', r'x.de has 2 lines and .*x.en 3; line by line'),
      ('ja\n' * 2000, r'x.de has 2,000 lines and .*x.en 3; line by line'),
      ('', 'x.de is empty'),
    ):
      with self.assertRaisesRegex(user_error.UserError, problem):
        list(parallel_text.ReadFilePair(self._File('x.de', content), english))
    with self.assertRaisesRegex(user_error.UserError, 'No such file.*none.fr'):
      list(parallel_text.ReadFilePair('/none.fr', english))

  def testPairsUp(self):
    self.assertEqual(
      parallel_text.PairUp(['x.de', 'x.en', 'y.en', 'y.fr']),
      [('x.de', 'x.en'), ('y.fr', 'y.en')],
    )
    for paths, problem in (
      (['x.de'], '--source=pair:x.de names 1 files; expected are two'),
      (['x.de', 'x.fr'], 'just one of x.de and x.fr has to be the English one'),
      (['x.en', 'y.en'], 'just one of x.en and y.en'),
    ):
      with self.assertRaisesRegex(user_error.UserError, problem):
        parallel_text.PairUp(paths)


if __name__ == '__main__':
  absltest.main()
