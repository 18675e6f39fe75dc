"""Tests of params_override."""

from __future__ import annotations

import collections
import enum

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import hyperparams, nested_map
from lingvo_gpipe.config import params_override

NestedMap = nested_map.NestedMap
Pair = collections.namedtuple('Pair', ['x', 'y'])


class Schedule(enum.Enum):
  GPIPE = 1
  ONE_F_ONE_B = 2


class Cell:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', '', '')
    p.Define('dropout', 0.5, '')
    return p


class Net:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', 'net', '')
    p.Define('cells', [Cell.Params(), Cell.Params()], '')
    p.Define('num_partitions', 2, '')
    p.Define('splits', None, '')
    p.Define('is_big', False, '')
    p.Define('shape', (3, 3), '')
    p.Define('sizes', [1], '')
    p.Define('table', {'de': 1}, '')
    p.Define('map', NestedMap(a=1), '')
    p.Define('pair', Pair(1, 2), '')
    p.Define('dtype', tf.float32, '')
    p.Define('schedule', Schedule.GPIPE, '')
    return p


def _Root():
  p = hyperparams.Params()
  p.Define('net', Net.Params(), '')
  p.Define('rate', 0.1, '')
  p.Define('dir', None, '')
  return p


class ApplyTest(parameterized.TestCase):
  @parameterized.parameters(
    ('net.num_partitions=4', 'net.num_partitions', 4),
    ('net.num_partitions: 4', 'net.num_partitions', 4),
    (' net.num_partitions\t=  4 ;', 'net.num_partitions', 4),
    ('rate=1e-3', 'rate', 0.001),
    ('rate=1', 'rate', 1),
    ('rate=None', 'rate', None),
    # Words for strings.
    ("net.name='a;b=c'", 'net.name', 'a;b=c'),
    ('net.name=big', 'net.name', 'big'),
    ('net.name=gs://bucket/a-b.c:d=e', 'net.name', 'gs://bucket/a-b.c:d=e'),
    ('net.name=#3', 'net.name', '#3'),
    ('net.name=inf', 'net.name', 'inf'),
    ('net.name=float32', 'net.name', 'float32'),
    ('net.name=None', 'net.name', None),
    ('dir=/tmp/data', 'dir', '/tmp/data'),
    # None can become anything.
    ('dir=3', 'dir', 3),
    ('dir=0.5', 'dir', 0.5),
    ('dir=bfloat16', 'dir', tf.bfloat16),
    ('dir=[1, 2]', 'dir', [1, 2]),
    ('net.splits=(1, 2)', 'net.splits', (1, 2)),
    ('dir=True', 'dir', True),
    # Elements.
    ("net.cells[-1].name='x'", 'net.cells[1].name', 'x'),
    ("net.table['de']=3", 'net.table', {'de': 3}),
    ('net.shape[1]=5', 'net.shape', (3, 5)),
    # Types follow the old value.
    ('net.shape=[5, 6]', 'net.shape', (5, 6)),
    ('net.shape=5,6', 'net.shape', (5, 6)),
    ('net.sizes=(5, 6)', 'net.sizes', [5, 6]),
    ('net.pair=[5, 6]', 'net.pair', Pair(5, 6)),
    ("net.map={'a': {'b': 1}}", 'net.map', NestedMap(a=NestedMap(b=1))),
    ('net.is_big=true', 'net.is_big', True),
    ('net.dtype=bfloat16', 'net.dtype', tf.bfloat16),
    ('net.schedule=ONE_F_ONE_B', 'net.schedule', Schedule.ONE_F_ONE_B),
  )
  def testOne(self, text, path, value):
    p = params_override.ApplyOverride(_Root(), text)
    self.assertEqual(p.Get(path), value)
    self.assertIs(type(p.Get(path)), type(value))
    self.assertEqual(p.Copy().FromText(p.ToText()), p)

  def testSeveral(self):
    p = _Root()
    result = params_override.ApplyOverride(
      p,
      "net.cells[0].name='x;y'; rate=0.2;;net.sizes=[1,\n  2];\n"
      'net.cells[1].dropout: 0.0\nrate=0.3',
    )
    self.assertIs(result, p)
    self.assertEqual(p.net.cells[0].name, 'x;y')
    self.assertEqual(p.net.cells[1].dropout, 0.0)
    self.assertEqual((p.net.sizes, p.rate), ([1, 2], 0.3))

  def testNothing(self):
    for text in ('', ' ', ';', '\n;\n'):
      self.assertEqual(params_override.ApplyOverride(_Root(), text), _Root())

  def testAnotherClass(self):
    p = params_override.ApplyOverride(
      _Root(), f'dir.cls=type/{__name__}/Cell; dir.dropout=0'
    )
    self.assertEqual(p.dir, Cell.Params().Set(dropout=0))


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters(
    (
      'net.num_partitions',
      "override 'net.num_partitions' is not of the form `path = value`, for "
      "example `net.cells[0].name = 'stem'`",
    ),
    (
      'net.num_partitions 4',
      "override 'net.num_partitions 4' is not of the form `path = value`, for "
      "example `net.cells[0].name = 'stem'`",
    ),
    (
      'net.num_partition=4',
      "override 'net.num_partition=4': 'net.num_partition' is not defined in "
      "Net.Params; did you mean 'num_partitions'?",
    ),
    (
      'ned.num_partitions=4',
      "override 'ned.num_partitions=4': 'ned' is not defined in Params; did "
      "you mean 'net'?",
    ),
    (
      'net.cells[2].name=a',
      "override 'net.cells[2].name=a': net.cells has no element [2]: its "
      'length is 2',
    ),
    (
      'rate=fast',
      "override 'rate=fast': 'rate': 'fast' is not a value; a string needs "
      "quotes: 'fast'",
    ),
    (
      "rate='0.1'",
      "override \"rate='0.1'\": 'rate' is of type float (0.1), not str ('0.1')",
    ),
    (
      'net.name=3',
      "override 'net.name=3': 'net.name' is of type str ('net'), not int (3)",
    ),
    (
      'net.name=two words',
      "override 'net.name=two words': 'net.name': 'two words' is not a value; "
      'write a literal of Python, a dtype or type/module/Name',
    ),
    (
      'net.num_partitions=0.5',
      "override 'net.num_partitions=0.5': 'net.num_partitions' is of type int "
      '(2), not float (0.5)',
    ),
    (
      'dir=type/not.there/X',
      "override 'dir=type/not.there/X': 'dir': type/not.there/X: module "
      "'not.there' is not imported; import it before reading this text",
    ),
    (
      'dir=',
      "override 'dir=': 'dir': '' is not a value; it is empty: write None for "
      'none',
    ),
    (
      "net.name='x",
      'override "net.name=\'x": line 1: the quote \' is never closed; write '
      'for example "net.num_partitions=4; net.name=\'big\'"',
    ),
  )
  def testMessages(self, text, message):
    p = _Root()
    for good in ('', 'rate=0.7; net.cells[0].dropout=0.9; '):
      if good and 'never closed' in message:
        continue
      with self.assertRaises(ValueError) as caught:
        params_override.ApplyOverride(p, good + text)
      self.assertEqual(str(caught.exception), message)
      self.assertEqual(p, _Root())  # All or nothing.

  def testFrozen(self):
    with self.assertRaisesRegex(TypeError, 'are frozen: override a Copy'):
      params_override.ApplyOverride(_Root().Freeze(), 'rate=1')


if __name__ == '__main__':
  absltest.main()
