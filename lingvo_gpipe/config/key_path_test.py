"""Tests of key_path."""

from __future__ import annotations

import collections

from absl.testing import absltest, parameterized

from lingvo_gpipe.config import key_path

Point = collections.namedtuple('Point', ['x', 'y'])


class ParseTest(parameterized.TestCase):
  @parameterized.parameters(
    ('a', ['a']),
    ('a.b_2.C', ['a', 'b_2', 'C']),
    ('cells[0].name', ['cells', 0, 'name']),
    ('cells[-1][ 2 ]', ['cells', -1, 2]),
    ("d['k'].x", ['d', 'k', 'x']),
    ('d["it\'s"]', ['d', "it's"]),
    (r"d['a\'b']", ['d', "a'b"]),
    ("d['a.b[0]']", ['d', 'a.b[0]']),
  )
  def testParses(self, path, steps):
    self.assertEqual(key_path.Parse(path), steps)

  @parameterized.parameters(
    '', '.a', 'a.', 'a..b', 'a[', 'a[]', 'a[b]', '[0]', 'a b', '3a', 'a[0]b',
    'a[1.5]', "a['x]", 'a\n', 3, None,
  )  # fmt: skip
  def testRefuses(self, path):
    with self.assertRaisesRegex(ValueError, 'is not a path such as'):
      key_path.Parse(path)


class ContainerTest(absltest.TestCase):
  def testElementPaths(self):
    self.assertEqual(key_path.Element([1], 0, 'a'), 'a[0]')
    self.assertEqual(key_path.Element({'k': 1}, 'k', 'a'), "a['k']")
    self.assertEqual(key_path.Element(Point(1, 2), 'x', 'a'), 'a.x')
    self.assertEqual(key_path.Element(Point(1, 2), 'x', ''), 'x')

  def testElementsInTheOrderOfNest(self):
    self.assertEqual(
      list(key_path.Elements({'b': 1, 'a': 2})), [('a', 2), ('b', 1)]
    )
    self.assertEqual(list(key_path.Elements(Point(3, 4))), [('x', 3), ('y', 4)])
    # Keys that cannot be compared keep their order.
    self.assertEqual(
      list(key_path.Elements({'b': 1, 3: 2})), [('b', 1), (3, 2)]
    )

  def testRebuildKeepsTypeAndOrder(self):
    for container in ([1, 2], (1, 2), Point(1, 2), {'b': 2, 'a': 1}):
      result = key_path.Rebuild(container, [7, 8])
      self.assertIs(type(result), type(container))
      self.assertLen(result, 2)
    self.assertEqual(list(result.items()), [('b', 8), ('a', 7)])
    default = collections.defaultdict(list, a=1)
    self.assertEqual(key_path.Rebuild(default, [5])['new'], [])

  def testLookup(self):
    self.assertEqual(key_path.Lookup([4, 5], -1, ''), 5)
    self.assertEqual(key_path.Lookup({'a': 4}, 'a', ''), 4)
    self.assertEqual(key_path.Lookup({3: 4}, 3, ''), 4)
    self.assertEqual(key_path.Lookup(Point(1, 2), 'y', ''), 2)
    self.assertEqual(key_path.Lookup(Point(1, 2), 1, ''), 2)

  def testLookupErrors(self):
    for container, step, message in (
      ([4, 5], 2, 'a.b has no element [2]: its length is 2'),
      ([4, 5], 'x', "a.b is of type list: 'x' is not inside it"),
      ({'size': 1}, 'siz', "a.b has no key 'siz'; did you mean 'size'?"),
      (Point(1, 2), 'z', "a.b has no field 'z'; the fields are: x, y"),
      (3, 'x', "a.b is of type int: 'x' is not inside it"),
    ):
      with self.assertRaises(key_path.MissingKeyError) as caught:
        key_path.Lookup(container, step, 'a.b')
      self.assertEqual(str(caught.exception), message)


if __name__ == '__main__':
  absltest.main()
