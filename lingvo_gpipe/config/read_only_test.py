"""Tests of read_only."""

from __future__ import annotations

import copy
import pickle

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import nested_map
from lingvo_gpipe.config import read_only


def _Samples():
  return (
    (read_only.ReadOnlyList, [2, 1]),
    (read_only.ReadOnlyDict, {'b': 2, 'a': 1}),
    (read_only.ReadOnlyNestedMap, nested_map.NestedMap(b=2, a=1)),
  )


_LIST_CHANGES = (
  lambda x: x.append(1),
  lambda x: x.clear(),
  lambda x: x.extend([1]),
  lambda x: x.insert(0, 1),
  lambda x: x.pop(),
  lambda x: x.remove(1),
  lambda x: x.reverse(),
  lambda x: x.sort(),
  lambda x: x.__setitem__(0, 1),
  lambda x: x.__setitem__(slice(0, 1), [1]),
  lambda x: x.__delitem__(0),
  lambda x: x.__iadd__([1]),
  lambda x: x.__imul__(2),
)
_DICT_CHANGES = (
  lambda x: x.__setitem__('a', 1),
  lambda x: x.__delitem__('a'),
  lambda x: x.__ior__({'a': 1}),
  lambda x: x.clear(),
  lambda x: x.pop('a'),
  lambda x: x.popitem(),
  lambda x: x.setdefault('c', 1),
  lambda x: x.update(a=1),
)
_MAP_CHANGES = (
  *_DICT_CHANGES,
  lambda x: setattr(x, 'a', 1),
  lambda x: delattr(x, 'a'),
  lambda x: x.Update(a=1),
  lambda x: x.Set('a', 1),
  lambda x: x.Set('c.d', 1),
)


class ReadOnlyTest(parameterized.TestCase):
  def testRefusesEveryChange(self):
    for (kind, plain), changes in zip(
      _Samples(), (_LIST_CHANGES, _DICT_CHANGES, _MAP_CHANGES), strict=True
    ):
      sealed = kind.Sealed(plain, 'net.sizes')
      for change in changes:
        with self.assertRaisesRegex(TypeError, "^'net.sizes' cannot change"):
          change(sealed)
      self.assertEqual(sealed, plain)

  def testReadsLikeThePlainOne(self):
    for kind, plain in _Samples():
      sealed = kind.Sealed(plain, 'x')
      self.assertIsInstance(sealed, type(plain))
      self.assertEqual(list(sealed), list(plain))
      self.assertLen(sealed, 2)
    self.assertEqual(read_only.ReadOnlyList([1]) + [2], [1, 2])
    self.assertEqual(
      read_only.ReadOnlyDict.Sealed({'a': 1}, 'x') | {'b': 2},
      {'a': 1, 'b': 2},
    )
    sealed = read_only.ReadOnlyNestedMap.Sealed({'a': 1}, 'x')
    self.assertEqual((sealed.a, sealed | {'b': 2}), (1, {'a': 1, 'b': 2}))

  def testCopiesArePlain(self):
    for kind, plain in _Samples():
      sealed = kind.Sealed(plain, 'x')
      for result in (
        copy.copy(sealed),
        copy.deepcopy(sealed),
        sealed.copy(),
        pickle.loads(pickle.dumps(sealed)),
      ):
        self.assertIs(type(result), type(plain))
        self.assertEqual(result, plain)

  def testNest(self):
    for kind, plain in _Samples():
      sealed = kind.Sealed(plain, 'x')
      doubled = tf.nest.map_structure(lambda v: v * 2, sealed)
      self.assertEqual(tf.nest.flatten(sealed), tf.nest.flatten(plain))
      self.assertEqual(doubled, tf.nest.map_structure(lambda v: v * 2, plain))


if __name__ == '__main__':
  absltest.main()
