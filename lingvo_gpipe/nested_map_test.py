"""Tests of NestedMap."""

from __future__ import annotations

import collections
import copy
import pickle

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import nested_map

NestedMap = nested_map.NestedMap
Pair = collections.namedtuple('Pair', ['total', 'weight'])


def _Sample():
  return NestedMap(
    b=[1, NestedMap(z=2, y=None), (3, 4)],
    a=NestedMap(pair=Pair(5, 6), plain={'k 1': 7, 'j': 8}),
    empty=[],
  )


class KeysTest(parameterized.TestCase):
  def testAttributesAreKeys(self):
    m = NestedMap()
    m.x = 1
    m['y'] = 2
    self.assertEqual((m['x'], m.y), (1, 2))
    del m.x
    self.assertNotIn('x', m)
    self.assertIn('y', dir(m))

  @parameterized.parameters('a b', '3a', '', 'a.b', 'é', 3, None)
  def testKeysMustBeIdentifiers(self, key):
    with self.assertRaisesRegex(ValueError, 'is not an identifier'):
      NestedMap({key: 1})

  @parameterized.parameters('keys', 'values', 'Flatten', 'copy', '__class__')
  def testNamesOfMethodsAreRefused(self, key):
    for call in (
      lambda: NestedMap({key: 1}),
      lambda: NestedMap().update({key: 1}),
      lambda: NestedMap().setdefault(key, 1),
      lambda: setattr(NestedMap(), key, 1),
    ):
      with self.assertRaisesRegex(ValueError, 'is the name of a method'):
        call()

  def testNearSpellings(self):
    m = NestedMap(weights=1, ids=2)
    message = r"no key 'weigths'; did you mean 'weights'\?$"
    with self.assertRaisesRegex(AttributeError, message):
      _ = m.weigths
    with self.assertRaisesRegex(AttributeError, message):
      del m.weigths
    with self.assertRaisesRegex(KeyError, message):
      _ = m['weigths']
    self.assertFalse(hasattr(m, 'missing'))

  def testUpdate(self):
    m = NestedMap(a=1)
    self.assertIs(m.Update({'b': 2}, c=3), m)
    m |= {'d': 4}
    self.assertIsInstance(m | {'e': 5}, NestedMap)
    self.assertEqual(m, dict(a=1, b=2, c=3, d=4))

  def testCopies(self):
    m = _Sample()
    for shallow in (m.copy(), copy.copy(m)):
      self.assertIsInstance(shallow, NestedMap)
      self.assertIs(shallow.b, m.b)
    leaf = object()
    m.leaf = leaf
    deep = m.DeepCopy()
    self.assertEqual(deep, m)
    self.assertIs(deep.leaf, leaf)
    deep.b[1].z = 9
    deep.a.plain['j'] = 9
    self.assertEqual((m.b[1].z, m.a.plain['j']), (2, 8))
    del m.leaf
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
      self.assertEqual(other, m)
      self.assertIsInstance(other.a, NestedMap)
      self.assertIsNot(other.a, m.a)

  def testNestedDicts(self):
    plain = {'a': {'b': [{'c': 1}]}, 'p': Pair({'d': 2}, 3)}
    m = NestedMap.FromNestedDict(plain)
    self.assertEqual((m.a.b[0].c, m.p.total.d), (1, 2))
    back = m.ToNestedDict()
    self.assertEqual(back, plain)
    self.assertIs(type(back['a']['b'][0]), dict)
    self.assertIs(type(back['p']), Pair)


class PathsTest(parameterized.TestCase):
  @parameterized.parameters(
    ('b[0]', 1),
    ('b[1].z', 2),
    ('b[-1][1]', 4),
    ('a.pair.weight', 6),
    ("a.plain['k 1']", 7),
    ('a.plain.j', 8),
  )
  def testGet(self, path, value):
    m = _Sample()
    self.assertEqual(m.GetItem(path), value)
    self.assertEqual(m.Get(path), value)
    self.assertTrue(m.Has(path))

  @parameterized.parameters('c', 'b[3]', 'b[1].x', 'a.pair.x', 'b.c', 'b[0].c')
  def testMissing(self, path):
    m = _Sample()
    self.assertFalse(m.Has(path))
    self.assertIsNone(m.Get(path))
    self.assertEqual(m.Get(path, 3), 3)
    with self.assertRaises(KeyError):
      m.GetItem(path)

  def testNoneIsThere(self):
    self.assertTrue(_Sample().Has('b[1].y'))
    self.assertIsNone(_Sample().Get('b[1].y', 3))

  def testMissingSaysWhere(self):
    with self.assertRaises(KeyError) as caught:
      NestedMap(net=NestedMap(kernel=1)).GetItem('net.kernle')
    self.assertEqual(
      str(caught.exception), "net has no key 'kernle'; did you mean 'kernel'?"
    )
    with self.assertRaisesRegex(ValueError, 'is not a path'):
      _Sample().Get('a..b')

  def testSetMakesWhatIsMissing(self):
    m = NestedMap()
    self.assertIs(m.Set('a.b[0].c', 1), m)
    m.Set('a.b[1]', 2).Set('a.b[1]', 3).Set('a.d', 4)
    self.assertEqual(m, {'a': {'b': [{'c': 1}, 3], 'd': 4}})
    self.assertIsInstance(m.a.b[0], NestedMap)

  def testSetErrors(self):
    m = NestedMap(a=1, b=[1], t=(1, 2))
    for path, message in (
      ('a.x', "a is of type int: 'x' is not inside it"),
      ('a.x.y', "a is of type int: 'x' is not inside it"),
      ('b[2]', r'b has no element \[2\]: its length is 1'),
      ('b.x', "b is of type list: 'x' is not inside it"),
      ('t[0]', 't is a tuple: it cannot change'),
    ):
      with self.assertRaisesRegex(KeyError, message):
        m.Set(path, 3)
    self.assertEqual(m, dict(a=1, b=[1], t=(1, 2)))

  def testGetSlice(self):
    m = NestedMap(a=1, b=NestedMap(c=2, d=3), e=4)
    self.assertEqual(m.GetSlice(['a', 'b.d']), {'a': 1, 'b': {'d': 3}})
    with self.assertRaisesRegex(KeyError, "no key 'f'"):
      m.GetSlice(['f'])

  def testUnion(self):
    a = NestedMap(x=1, sub=NestedMap(y=2))
    b = NestedMap(z=3, sub=NestedMap(w=4))
    union = a.Union(b)
    self.assertEqual(union, {'x': 1, 'z': 3, 'sub': {'y': 2, 'w': 4}})
    self.assertEqual(a, {'x': 1, 'sub': {'y': 2}})
    with self.assertRaisesRegex(ValueError, "have 'sub.y'"):
      a.Union(NestedMap(sub=NestedMap(y=[])))


class LeavesTest(absltest.TestCase):
  def testFlattenItems(self):
    self.assertEqual(
      _Sample().FlattenItems(),
      [
        ('a.pair.total', 5),
        ('a.pair.weight', 6),
        ("a.plain['j']", 8),
        ("a.plain['k 1']", 7),
        ('b[0]', 1),
        ('b[1].y', None),
        ('b[1].z', 2),
        ('b[2][0]', 3),
        ('b[2][1]', 4),
      ],
    )

  def testPathsOfLeavesCanBeLookedUp(self):
    m = _Sample()
    for path, value in m.FlattenItems():
      self.assertEqual(m.GetItem(path), value)

  def testPack(self):
    m = _Sample()
    packed = m.Pack(range(9))
    self.assertEqual(packed.Flatten(), list(range(9)))
    self.assertTrue(m.IsCompatible(packed))
    self.assertEqual(m.Pack(m.Flatten()), m)
    self.assertEqual(list(packed), list(m))
    with self.assertRaisesRegex(ValueError, 'needs 9 leaves.*got 8'):
      m.Pack(range(8))

  def testTransform(self):
    m = NestedMap(a=1, b=[2, Pair(3, 4)])
    self.assertEqual(
      m.Transform(lambda v: v * 10), {'a': 10, 'b': [20, Pair(30, 40)]}
    )
    self.assertEqual(
      m.TransformWithKey(lambda k, v: f'{k}={v}'),
      {'a': 'a=1', 'b': ['b[0]=2', Pair('b[1].total=3', 'b[1].weight=4')]},
    )

  def testFilter(self):
    m = NestedMap(a=1, b=[2, Pair(3, 4), NestedMap(c=5)], d=NestedMap(e=6))
    self.assertEqual(m.Filter(lambda v: v in (2, 3)), {'b': [2, Pair(3, None)]})
    self.assertEqual(
      m.FilterKeyVal(lambda k, v: k in ('a', 'b[2].c')),
      {'a': 1, 'b': [{'c': 5}]},
    )
    nothing = m.Filter(lambda v: False)
    self.assertEqual(nothing, {})
    self.assertIsInstance(nothing, NestedMap)

  def testIsCompatible(self):
    m = _Sample()
    self.assertTrue(m.IsCompatible(m.Transform(str)))
    for path, value in (
      ('b', [1, 2]),
      ('b[1]', 3),
      ('a.pair', (5, 6)),
      ('extra', 1),
      ('a.plain', {'k 1': 7}),
    ):
      self.assertFalse(m.IsCompatible(_Sample().Set(path, value)), path)
    self.assertFalse(NestedMap(a=[1]).IsCompatible(NestedMap(a=(1,))))
    self.assertFalse(m.IsCompatible(3))

  def testDebugString(self):
    m = NestedMap(w=tf.zeros([2, 3]), long_name=NestedMap(n=None), t='x' * 99)
    self.assertEqual(
      m.DebugString().split('\n'),
      [
        'long_name.n  None',
        f"t            '{'x' * 76}...",
        'w            float32 (2, 3)',
      ],
    )
    self.assertEqual(NestedMap().DebugString(), '')


class TensorFlowTest(absltest.TestCase):
  def testNestAgrees(self):
    m = _Sample()
    self.assertEqual(tf.nest.flatten(m), m.Flatten())
    mapped = tf.nest.map_structure(lambda v: (v or 0) + 1, m)
    self.assertIs(type(mapped.a), NestedMap)
    self.assertIs(type(mapped.a.pair), Pair)
    self.assertEqual(mapped.Flatten(), [6, 7, 9, 8, 2, 1, 3, 4, 5])
    self.assertEqual(list(mapped), list(m))
    packed = tf.nest.pack_sequence_as(m, m.Flatten())
    self.assertEqual(packed, m)
    tf.nest.assert_same_structure(m, m.Transform(str))

  def testThroughFunctionsAndLoops(self):
    @tf.function
    def _Fn(m):
      def _Body(i, state):
        return i + 1, state.Transform(lambda v: v * 2)

      unused_i, state = tf.while_loop(
        lambda i, state: i < 3, _Body, (0, NestedMap(b=m.x[0], a=m.y))
      )
      return NestedMap(out=state, none=None)

    result = _Fn(NestedMap(x=[tf.constant(1.0)], y=tf.constant([2])))
    self.assertIsInstance(result.out, NestedMap)
    self.assertEqual(result.out.b.numpy(), 8.0)
    self.assertEqual(result.out.a.numpy(), [16])
    self.assertIsNone(result.none)

  def testThroughDatasets(self):
    data = tf.data.Dataset.from_tensor_slices(
      NestedMap(b=[1, 2], a=NestedMap(c=[3, 4]))
    ).map(lambda m: NestedMap(m, d=m.b + m.a.c))
    first = next(iter(data))
    self.assertIsInstance(first, NestedMap)
    self.assertEqual(first.Transform(int), {'b': 1, 'a': {'c': 3}, 'd': 4})


if __name__ == '__main__':
  absltest.main()
