"""Tests of statements."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.config import statements


def _Split(text, ends='\n', comments=True):
  return [
    (s.where, s.text.strip()) for s in statements.Split(text, ends, comments)
  ]


class SplitTest(parameterized.TestCase):
  def testLines(self):
    text = '\n'.join(
      [
        'a : 1',
        '',
        '  # a comment with "quotes\' and [brackets',
        "b : 'x # y'  # why",
        '\t',
        'c : [1,  # one',
        '   2,',
        ']',
        'd[0].e : """one',
        "it's",
        '"""',
        "f : 'last'",
      ]
    )
    self.assertEqual(
      _Split(text),
      [
        ('line 1', 'a : 1'),
        ('line 4', "b : 'x # y'"),
        ('line 6', 'c : [1,  \n   2,\n]'),
        ('line 9', 'd[0].e : """one\nit\'s\n"""'),
        ('line 12', "f : 'last'"),
      ],
    )

  def testSemicolons(self):
    self.assertEqual(
      _Split('a=1; b=\'x;y\';;c=[";"]\nd=#fff;e=2', ';\n', comments=False),
      [
        ('line 1', 'a=1'),
        ('line 1', "b='x;y'"),
        ('line 1', 'c=[";"]'),
        ('line 2', 'd=#fff'),
        ('line 2', 'e=2'),
      ],
    )
    self.assertEqual(_Split('a : 1; b'), [('line 1', 'a : 1; b')])

  def testEscapes(self):
    text = "a : 'it\\'s; \\\\'"
    self.assertEqual(_Split(text + ';b=2', ';\n')[0][1], text)

  def testNothing(self):
    for text in ('', '\n\n', ' ', '# only'):
      self.assertEqual(_Split(text), [])

  @parameterized.parameters(
    ("a : 1\nb : 'x\nc : 2", "line 2: the quote ' is never closed"),
    ('a : 1\nb : [1,\nc : 2\n', 'line 2: the bracket [ is never closed'),
    ('a : {(}', 'line 1: the bracket { is never closed'),
  )
  def testNeverClosed(self, text, message):
    with self.assertRaises(ValueError) as caught:
      _Split(text)
    self.assertEqual(str(caught.exception), message)

  def testLongLinesTakeNoTime(self):
    # Quadratic time would be minutes.
    for text in (' ' * 200_000 + '(', 'a' * 200_000, '[' * 100_000):
      try:
        _Split(text)
      except ValueError:
        pass


class TreeTest(absltest.TestCase):
  def _Tree(self, text, signs=':'):
    return statements.Tree(list(statements.Split(text, '\n', True)), signs)

  def testSortsByPath(self):
    root = self._Tree("a.b : 1\na.c[0].d : 'x: y'\na.c[1] : 3\na['b'].e:4")
    a = root.below['a']
    self.assertEqual(a.below['b'].text, '1')
    self.assertEqual(a.below['b'].below['e'].text, '4')
    self.assertEqual(a.below['c'].below[0].below['d'].text, "'x: y'")
    self.assertEqual(a.below['c'].below[1].where, 'line 3')
    self.assertIsNone(a.text)
    self.assertEqual(a.below['c'].where, 'line 2')

  def testLastOneWins(self):
    root = self._Tree('a.b : 1\na.b : 2\na.b : 3')
    node = root.below['a'].below['b']
    self.assertEqual((node.text, node.where), ('3', 'line 3'))

  def testSigns(self):
    self.assertEqual(self._Tree('a=b:c', '=:').below['a'].text, 'b:c')
    self.assertEqual(self._Tree('a: b=c', '=:').below['a'].text, 'b=c')

  def testMalformed(self):
    for text in ('foo', 'a = 3', ': 3', 'a b : 3', '[0] : 3', 'a.3 : 3'):
      with self.assertRaises(ValueError) as caught:
        self._Tree('x : 1\n' + text)
      self.assertEqual(
        str(caught.exception),
        f'line 2: {text!r} is not of the form `path : value`, for example '
        "`net.cells[0].name : 'stem'`",
      )


if __name__ == '__main__':
  absltest.main()
