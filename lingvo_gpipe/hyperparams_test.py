"""Tests of Params and InstantiableParams."""

from __future__ import annotations

import collections
import copy
import gc
import math
import pickle

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe import hyperparams, nested_map

NestedMap = nested_map.NestedMap
Pair = collections.namedtuple('Pair', ['x', 'y'])


class Conv:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', '', 'Its name.')
    p.Define('filters', 8, 'Number of filters.')
    p.Define('shape', [3, 3], 'Height and width.')
    return p

  def __init__(self, params, extra=None):
    self.params = params
    self.extra = extra


class Net:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', 'net', 'Its name.')
    p.Define('stem', Conv.Params(), 'First.')
    p.Define('cells', [], 'The others.')
    p.Define('table', {}, 'By language.')
    p.Define('map', NestedMap(), 'A map.')
    p.Define('pair', Pair(0, 0), 'A pair.')
    p.Define('rate', None, 'None: none.')
    return p


def _Net():
  return Net.Params().Set(
    cells=[Conv.Params().Set(name='c0'), Conv.Params().Set(name='c1')],
    table={'de': Conv.Params(), 'sizes': [1, 2]},
    map=NestedMap(a=(Conv.Params(), [5]), b=6),
    pair=Pair(Conv.Params(), {'k': 7}),
  )


class _TestCase(parameterized.TestCase):
  def assertRaisesText(self, error, text, fn, *args, **kwargs):
    with self.assertRaises(error) as caught:
      fn(*args, **kwargs)
    self.assertEqual(str(caught.exception), text)


class DefineTest(_TestCase):
  def testDefineGetSet(self):
    p = hyperparams.Params()
    self.assertIsNone(p.Define('num_layers', 2, 'Number.'))
    self.assertEqual(p.num_layers, 2)
    p.num_layers = 3
    self.assertEqual(p.num_layers, 3)
    self.assertIn('num_layers', p)
    self.assertIn('num_layers', dir(p))
    self.assertIn('Define', dir(p))
    self.assertLen(p, 1)

  def testEmptyIsTrue(self):
    self.assertTrue(hyperparams.Params())

  @parameterized.parameters(
    'Name', '', '3a', 'a-b', 'a.b', '_a', 'a b', 'if', 3
  )
  def testIllegalNames(self, name):
    with self.assertRaisesRegex(ValueError, 'must be a lower-case identifier'):
      hyperparams.Params().Define(name, 1, '')

  def testTwice(self):
    p = _Net()
    self.assertRaisesText(
      AttributeError,
      "'cells[1].filters' is defined already",
      p.cells[1].Define,
      'filters',
      3,
      '',
    )

  def testUnknownNamesGiveThePathFromTheRoot(self):
    p = _Net()
    conv = "is not defined in Conv.Params; did you mean 'filters'?"
    for holder, path in (
      (p.stem, 'stem'),
      (p.cells[1], 'cells[1]'),
      (p.table['de'], "table['de']"),
      (p.map.a[0], 'map.a[0]'),
      (p.pair.x, 'pair.x'),
    ):
      text = f'{path + ".fliters"!r} {conv}'
      self.assertRaisesText(AttributeError, text, getattr, holder, 'fliters')
      self.assertRaisesText(AttributeError, text, setattr, holder, 'fliters', 1)
      self.assertRaisesText(AttributeError, text, holder.Set, fliters=1)
      self.assertRaisesText(AttributeError, text, holder.Get, 'fliters')
      self.assertRaisesText(AttributeError, text, holder.Delete, 'fliters')
      self.assertRaisesText(AttributeError, text, p.Get, f'{path}.fliters')
    self.assertFalse(hasattr(p, 'nothing'))

  def testPathsOfCopies(self):
    p = _Net().Copy()
    with self.assertRaisesRegex(AttributeError, r"^'cells\[0\].x' is not"):
      _ = p.cells[0].x
    # A part that stands alone does not know of its former root.
    part = p.cells[0].Copy()
    with self.assertRaisesRegex(AttributeError, "^'x' is not"):
      _ = part.x

  def testNoNearName(self):
    p = hyperparams.Params()
    p.Define('beta', 1, '')
    p.Define('alpha', 1, '')
    self.assertRaisesText(
      AttributeError,
      "'zzz' is not defined in Params; the params are: alpha, beta",
      getattr,
      p,
      'zzz',
    )

  def testCannotContainItself(self):
    p = Net.Params()
    for value in (p, [p], {'k': (p,)}):
      with self.assertRaisesRegex(ValueError, "'rate' would contain itself"):
        p.rate = value
    with self.assertRaisesRegex(ValueError, 'stem.name. would contain itself'):
      p.stem.name = p
    # What once was a part may hold its former whole.
    stem = p.stem
    p.stem = None
    stem.name = p
    self.assertIs(stem.name, p)

  def testDescriptions(self):
    p = Conv.Params()
    p.shape.append(5)  # The default shown is that of the definition.
    self.assertEqual(p.Description('filters'), 'Number of filters.')
    self.assertEqual(
      p.DescribeText(),
      f'cls (default: type/{__name__}/Conv)\n'
      '    The class whose params these are.\n'
      'filters (default: 8)\n'
      '    Number of filters.\n'
      "name (default: '')\n"
      '    Its name.\n'
      'shape (default: [3, 3])\n'
      '    Height and width.',
    )
    self.assertIn('stem (default: <Conv.Params>)', Net.Params().DescribeText())
    with self.assertRaisesRegex(AttributeError, "did you mean 'filters'"):
      p.Description('filter')


class PathsTest(_TestCase):
  @parameterized.parameters(
    ('name', 'net'),
    ('stem.filters', 8),
    ('cells[1].name', 'c1'),
    ('cells[-1].shape[0]', 3),
    ("table['de'].filters", 8),
    ('table["sizes"][1]', 2),
    ('map.a[0].filters', 8),
    ('map.a[1][0]', 5),
    ("pair.y['k']", 7),
  )
  def testGetAndIn(self, path, value):
    p = _Net()
    self.assertEqual(p.Get(path), value)
    self.assertIn(path, p)

  def testNotIn(self):
    p = _Net()
    for path in ('x', 'stem.x', 'cells[2]', 'name.x', 'a..b', '', 3):
      self.assertNotIn(path, p)

  def testGetErrors(self):
    p = _Net()
    for path, text in (
      ('cells[2].name', 'cells has no element [2]: its length is 2'),
      ("table['dee']", "table has no key 'dee'; did you mean 'de'?"),
      ('rate.x', "rate is of type NoneType: 'x' is not inside it"),
      ('cells.name', "cells is of type list: 'name' is not inside it"),
    ):
      self.assertRaisesText(AttributeError, text, p.Get, path)
    self.assertRaisesText(
      AttributeError,
      'cells[1].shape has no element [5]: its length is 2',
      p.cells[1].Get,
      'shape[5]',
    )
    with self.assertRaisesRegex(ValueError, 'is not a path'):
      p.Get('a..b')

  def testSet(self):
    p = _Net()
    self.assertIs(p.Set(name='a', **{'stem.filters': 3}), p)
    p.Set({'cells[0].name': 'first', 'cells[-1].shape[1]': 5}, rate=0.5)
    p.SetPath('table["sizes"]', None).SetPath('map.b', 8)
    p.SetPath("pair.y['k']", 9)
    self.assertEqual(
      [
        p.name,
        p.stem.filters,
        p.cells[0].name,
        p.cells[1].shape,
        p.rate,
        p.table['sizes'],
        p.map.b,
        p.pair.y,
      ],
      ['a', 3, 'first', [3, 5], 0.5, None, 8, {'k': 9}],
    )

  def testSetErrors(self):
    p = _Net()
    before = p.Copy()
    for path in ('cells[2]', "table['x']", 'stem.x', 'name.x', 'cells[2].name'):
      with self.assertRaises(AttributeError):
        p.SetPath(path, 1)
    with self.assertRaisesRegex(TypeError, "'map.a.0.' cannot change.*tuple"):
      p.SetPath('map.a[0]', 1)
    self.assertEqual(p, before)

  def testDelete(self):
    p = _Net()
    self.assertIs(p.Delete('rate', 'stem.filters', 'cells[0].name'), p)
    self.assertNotIn('rate', p)
    self.assertNotIn('filters', p.stem)
    self.assertNotIn('name', p.cells[0])
    self.assertIn('name', p.cells[1])
    p.Define('rate', 3, 'Again.')
    del p.rate
    self.assertNotIn('rate', p)
    with self.assertRaisesRegex(AttributeError, "'cells.0.' is not a param"):
      p.Delete('cells[0]')

  def testKeysAndIteration(self):
    p = Conv.Params()
    self.assertEqual(p.GetKeys(), ['cls', 'filters', 'name', 'shape'])
    self.assertEqual(
      list(p.IterParams()),
      [('cls', Conv), ('name', ''), ('filters', 8), ('shape', [3, 3])],
    )

  def testVisit(self):
    p = hyperparams.Params()
    p.Define('b', [1, {'k': 2}], '')
    p.Define('a', Conv.Params().Delete('cls', 'shape'), '')
    p.Define('m', NestedMap(x=Pair(3, 4)), '')
    log = []

    def _Enter(path, value):
      log.append(f'>{path}')
      return path != 'a'

    p.Visit(
      lambda path, value: log.append(f'{path}={value}'),
      _Enter,
      lambda path, value: log.append(f'<{path}'),
    )
    self.assertEqual(
      ' '.join(log),
      "> >a >b b[0]=1 >b[1] b[1]['k']=2 <b[1] <b >m >m.x m.x.x=3 m.x.y=4 "
      '<m.x <m <',
    )


class EqualityTest(_TestCase):
  def testEqual(self):
    self.assertEqual(_Net(), _Net())
    for path, value in (
      ('name', 'x'),
      ('cells[1].filters', 9),
      ('map.a[1][0]', 6),
      ("pair.y['k']", 8),
      ('table["de"].shape', (3, 3)),
      ('cells', []),
      ('stem', None),
    ):
      self.assertNotEqual(_Net(), _Net().SetPath(path, value), path)
    self.assertNotEqual(_Net(), _Net().Delete('rate'))
    self.assertNotEqual(_Net(), 3)
    self.assertNotEqual(
      hyperparams.Params(), hyperparams.InstantiableParams().Delete('cls')
    )

  def testNanEqualsNan(self):
    a, b = Net.Params(), Net.Params()
    a.rate, b.rate = float('nan'), math.nan * 2
    self.assertEqual(a, b)
    a.rate, b.rate = [float('nan')], [math.nan * 2]
    self.assertEqual(a, b)
    b.rate = [1.0]
    self.assertNotEqual(a, b)

  def testArrays(self):
    a, b = Net.Params(), Net.Params()
    a.rate, b.rate = np.zeros(2), np.zeros(2)
    self.assertNotEqual(a, b)  # Without an answer they are not the same.
    b.rate = a.rate
    self.assertEqual(a, b)

  def testUnhashable(self):
    with self.assertRaises(TypeError):
      hash(Net.Params())


class CopyTest(_TestCase):
  @parameterized.parameters(
    lambda p: p.Copy(),
    copy.copy,
    copy.deepcopy,
    lambda p: pickle.loads(pickle.dumps(p)),
    lambda p: p.Freeze().Copy(),
    lambda p: copy.deepcopy({'p': p.Freeze()})['p'],
  )
  def testDeep(self, copier):
    p = _Net()
    q = copier(p)
    self.assertEqual(p, q)
    self.assertIs(type(q), type(p))
    self.assertFalse(q.IsFrozen())
    for path in (
      'name',
      'stem.name',
      'cells[0].name',
      'cells[1].shape[0]',
      "table['de'].name",
      "table['sizes'][0]",
      'map.a[0].name',
      'map.a[1][0]',
      'map.b',
      'pair.x.name',
      "pair.y['k']",
    ):
      old = p.Get(path)
      q.SetPath(path, 'new')
      self.assertEqual(p.Get(path), old)
    q.cells.append(1)
    q.stem.Define('more', 1, '')
    self.assertLen(p.cells, 2)
    self.assertNotIn('more', p.stem)
    self.assertEqual(q.Description('rate'), 'None: none.')

  def testFrozenStaysFrozenThroughPickle(self):
    p = pickle.loads(pickle.dumps(_Net().Freeze()))
    self.assertTrue(p.IsFrozen())
    self.assertTrue(p.map.a[0].IsFrozen())
    with self.assertRaises(TypeError):
      p.cells.append(1)

  def testOneInTwoPlacesBecomesTwo(self):
    conv = Conv.Params()
    p = Net.Params().Set(cells=[conv, conv]).Copy()
    p.cells[0].name = 'x'
    self.assertEqual(p.cells[1].name, '')

  def testOtherObjectsAreTheSame(self):
    thing = object()
    self.assertIs(Net.Params().Set(rate=[thing]).Copy().rate[0], thing)

  def testKeepsNothingAlive(self):
    p = _Net()
    cell = p.cells[0]
    del p
    gc.collect()
    with self.assertRaisesRegex(AttributeError, "^'x' is not defined"):
      _ = cell.x

  def testCopyFieldsTo(self):
    source = Net.Params().Set(name='src', cells=[Conv.Params()], rate=3)
    target = Net.Params()
    target.cls = Conv
    self.assertIs(
      hyperparams.CopyFieldsTo(source, target, skip=['name']), target
    )
    self.assertEqual((target.name, target.rate, target.cls), ('net', 3, Conv))
    target.cells[0].name = 'x'
    self.assertEqual(source.cells[0].name, '')
    with self.assertRaisesRegex(AttributeError, "'stem' is not defined"):
      hyperparams.CopyFieldsTo(source, Conv.Params())


class FreezeTest(_TestCase):
  def testEveryChangeIsRefused(self):
    p = _Net()
    self.assertFalse(p.IsFrozen())
    self.assertIs(p.Freeze(), p)
    self.assertTrue(p.IsFrozen())
    before = p.Copy()

    def _IAdd():
      p.cells += [1]

    for path, change in (
      ('name', lambda: setattr(p, 'name', 1)),
      ('name', lambda: p.Set(name=1)),
      ('rate', lambda: p.Delete('rate')),
      ('new', lambda: p.Define('new', 1, '')),
      ('stem.name', lambda: setattr(p.stem, 'name', 1)),
      ('stem.name', lambda: p.SetPath('stem.name', 1)),
      ('cells[1].name', lambda: p.cells[1].Set(name=1)),
      ('cells[1].shape', lambda: p.cells[1].shape.append(1)),
      ('cells', lambda: p.cells.append(1)),
      ('cells', _IAdd),
      ('cells', lambda: p.SetPath('cells[0]', 1)),
      ("table['de'].name", lambda: p.table['de'].Set(name=1)),
      ("table['sizes']", lambda: p.table['sizes'].pop()),
      ('table', lambda: p.table.update(x=1)),
      ('map.a[0].name', lambda: p.map.a[0].Set(name=1)),
      ('map.a[1]', lambda: p.map.a[1].append(1)),
      ('map', lambda: setattr(p.map, 'b', 1)),
      ('pair.x.name', lambda: p.pair.x.Set(name=1)),
      ('pair.y', lambda: p.pair.y.clear()),
    ):
      with self.assertRaises(TypeError) as caught:
        change()
      self.assertStartsWith(str(caught.exception), f'{path!r} cannot change: ')
    self.assertRaisesText(
      TypeError,
      "'cells[1].name' cannot change: these params are frozen; change them "
      'before Instantiate(), or change a Copy()',
      p.cells[1].Set,
      name=3,
    )
    with self.assertRaisesRegex(TypeError, 'is frozen: read the text into a'):
      p.FromText('rate : 3')
    self.assertEqual(p, before)

  def testPathsFromTheRootEvenOfAPart(self):
    p = _Net()
    p.cells[1].Freeze()
    with self.assertRaisesRegex(TypeError, r"^'cells\[1\].shape' cannot"):
      p.cells[1].shape.append(3)
    p.cells[0].name = 'free'
    with self.assertRaisesRegex(TypeError, r"^'cells\[1\]' is frozen"):
      p.FromText("cells[1].name : 'x'")

  def testFrozenReadsTheSame(self):
    p, frozen = _Net(), _Net().Freeze()
    self.assertEqual(p, frozen)
    self.assertEqual(p.ToText(), frozen.ToText())
    self.assertIsInstance(frozen.cells, list)
    self.assertIsInstance(frozen.table, dict)
    self.assertIsInstance(frozen.map, NestedMap)
    self.assertIsInstance(frozen.pair, Pair)
    self.assertEqual(frozen.Freeze(), frozen)

  def testCopyOfAPartCanChange(self):
    p = _Net().Freeze()
    cell = p.cells[1].Copy()
    cell.shape.append(4)
    self.assertEqual(cell.shape, [3, 3, 4])
    self.assertEqual(p.cells[1].shape, [3, 3])


class InstantiateTest(_TestCase):
  def testInstantiate(self):
    p = Conv.Params()
    layer = p.Instantiate(name='x', extra=3)
    self.assertIsInstance(layer, Conv)
    self.assertEqual((layer.params.name, layer.extra, p.name), ('x', 3, ''))
    self.assertEqual(p.Freeze().Instantiate(filters=2).params.filters, 2)

  def testErrors(self):
    self.assertRaisesText(
      TypeError,
      "'filter' is neither a param of Conv.Params nor an argument of its "
      "constructor; did you mean 'filters'?",
      Conv.Params().Instantiate,
      filter=3,
    )
    p = Net.Params().Set(rate=hyperparams.InstantiableParams())
    self.assertRaisesText(
      ValueError,
      "'rate.cls' is None: set it to the class to instantiate",
      p.rate.Instantiate,
    )

  def testAnyKeywords(self):
    class Free:
      def __init__(self, params, **kwargs):
        self.kwargs = kwargs

    layer = hyperparams.InstantiableParams(Free).Instantiate(anything=3)
    self.assertEqual(layer.kwargs, {'anything': 3})


class ReprTest(_TestCase):
  def testRepr(self):
    self.assertEqual(
      repr(Conv.Params()), "Conv.Params(name='', filters=8, shape=[3, 3])"
    )
    self.assertLess(len(repr(_Net().Set(name='x' * 999))), 250)
    self.assertEqual(str(Conv.Params()), Conv.Params().ToText())


if __name__ == '__main__':
  absltest.main()
