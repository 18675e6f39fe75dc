"""Tests of placeholders."""

from absl.testing import absltest, parameterized

from tasks.mt import placeholders


class PlaceholdersTest(parameterized.TestCase):
  @parameterized.parameters(
    ('no placeholder, 50% of it, 5 % de, 50%ig', []),
    ('%s of %d', ['%s', '%d']),
    ('%sni', ['%s']),
    ('%5.1f%% done', ['%5.1f', '%%']),
    ('%-10s|%*d|%llu|%zu|%hhx', ['%-10s', '%*d', '%llu', '%zu', '%hhx']),
    ('%(name)s, %(n)02d', ['%(name)s', '%(n)02d']),
    ('%1 and %2', ['%1', '%2']),
    ('{0} {name} {} {n:d} {a.b}', ['{0}', '{name}', '{}', '{n:d}', '{a.b}']),
    ('{a, b} {', []),
    ('&amp; & %', []),
  )
  def testFinds(self, text, found):
    self.assertEqual(placeholders.Find(text), found)

  def testCounts(self):
    self.assertEqual(placeholders.Counts('%s: %s %d'), {'%s': 2, '%d': 1})
    self.assertEqual(
      placeholders.Counts('%3$d %2$s %1$s'), placeholders.Counts('%s: %s %d')
    )
    self.assertNotEqual(
      placeholders.Counts('%(a)s'), placeholders.Counts('%(b)s')
    )

  def testWithout(self):
    self.assertEqual(placeholders.Without('a %(b_c)s_d'), 'a        _d')


if __name__ == '__main__':
  absltest.main()
