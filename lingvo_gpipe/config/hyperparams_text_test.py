"""Tests of Params as text."""

from __future__ import annotations

import collections
import enum
import math
import random
import time

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import hyperparams, nested_map

NestedMap = nested_map.NestedMap
Pair = collections.namedtuple('Pair', ['x', 'y'])


class Color(enum.Enum):
  RED = 1
  BLUE = 2


class Conv:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', '', 'Its name.')
    p.Define('filters', 8, 'Number of filters.')
    p.Define('dropout', 0.5, 'Probability.')
    return p


class Pool:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', '', 'Its name.')
    p.Define('size', None, 'Window.')
    return p


class Net:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', 'net', 'Its name.')
    p.Define('cells', [], 'A list of Params.')
    p.Define('stem', Conv.Params(), 'Params.')
    p.Define('init', hyperparams.Params(), 'Params of no class.')
    p.init.Define('scale', 1.0, '')
    p.Define('table', {}, 'A dict.')
    p.Define('map', NestedMap(), 'A map.')
    p.Define('pair', Pair(0, 0), 'A pair.')
    p.Define('sizes', (1, 2), 'A tuple.')
    p.Define('is_big', False, 'A bool.')
    p.Define('rate', None, 'None: none.')
    return p


class _Opaque:
  pass


def _Net():
  return Net.Params().Set(
    cells=[Conv.Params().Set(name='c0'), Pool.Params().Set(name='c1')],
    table={'de': Conv.Params(), 'n': 3},
  )


_NET_TEXT = f"""\
cells : list[2]
cells[0].cls : type/{__name__}/Conv
cells[0].dropout : 0.5
cells[0].filters : 8
cells[0].name : 'c0'
cells[1].cls : type/{__name__}/Pool
cells[1].name : 'c1'
cells[1].size : None
cls : type/{__name__}/Net
init.scale : 1.0
is_big : False
map : NestedMap({{}})
name : 'net'
pair : (0, 0)
rate : None
sizes : (1, 2)
stem.cls : type/{__name__}/Conv
stem.dropout : 0.5
stem.filters : 8
stem.name : ''
table : dict['de', 'n']
table['de'].cls : type/{__name__}/Conv
table['de'].dropout : 0.5
table['de'].filters : 8
table['de'].name : ''
table['n'] : 3
"""


class _TestCase(parameterized.TestCase):
  def assertRefused(self, error, text, message, params=None):
    """Checks the error and that nothing has changed."""
    p = params or _Net()
    before = p.Copy()
    # What comes before the error must not happen either.
    good = "name : 'changed'\ncells[0].filters : 99\n"
    with self.assertRaises(error) as caught:
      p.FromText(good + text)
    self.assertEqual(str(caught.exception), message)
    self.assertEqual(p.ToText(), before.ToText())


class WriteTest(_TestCase):
  def testText(self):
    self.assertEqual(_Net().ToText(), _NET_TEXT)
    self.assertEqual(hyperparams.Params().ToText(), '')

  def testContainersOfParams(self):
    p = Pool.Params().Delete('cls', 'name')
    conv = Conv.Params().Delete('cls', 'name', 'dropout')
    for value, lines in (
      ((conv,), 'size : tuple[1]\nsize[0].filters : 8\n'),
      (
        NestedMap(b=[None, conv], a=1),
        "size : NestedMap['b', 'a']\nsize.a : 1\nsize.b : list[2]\n"
        'size.b[0] : None\nsize.b[1].filters : 8\n',
      ),
      (
        Pair(conv, 1),
        'size : tuple[2]\nsize.x.filters : 8\nsize.y : 1\n',
      ),
    ):
      p.size = value
      self.assertEqual(p.ToText(), lines)


class ReadTest(_TestCase):
  def testReadsItsOwnText(self):
    text = _Net().ToText()
    for target in (
      _Net(),
      Net.Params(),
      Net.Params().Set(cells=[Pool.Params()] * 3, table=None, stem=None),
      _Net().Set(stem=Pool.Params(), name=None, sizes=None),
    ):
      self.assertIs(target.FromText(text), target)
      self.assertEqual(target, _Net())
      self.assertEqual(target.ToText(), text)

  def testCommentsAndBlankLines(self):
    p = _Net().FromText(
      "# A comment: 'a\n\n  name: 'x # y'  # why\n\trate\t:\t[1,\n 2] \n"
    )
    self.assertEqual((p.name, p.rate), ('x # y', [1, 2]))
    self.assertEqual(_Net().FromText('\n# nothing'), _Net())

  @parameterized.parameters(
    *[
      (value,)
      for value in (
        3,
        0.5,
        'text',
        True,
        [1],
        (1,),
        {'a': 1},
        NestedMap(a=1),
        Color.BLUE,
        Net,
        math.inf,
        b'x',
        [{'a': (None, -1)}],
      )
    ]
  )
  def testNoneCanBecomeAnything(self, value):
    text = Net.Params().Set(rate=value).ToText()
    p = Net.Params().FromText(text)
    self.assertEqual(p.rate, value)
    self.assertIs(type(p.rate), type(value))

  def testNoneCanBecomeADType(self):
    self.assertIs(Net.Params().FromText('rate : bfloat16').rate, tf.bfloat16)

  def testAnythingCanBecomeNone(self):
    p = _Net()
    for name in p.GetKeys():
      p.FromText(f'{name} : None')
      self.assertIsNone(p.Get(name))

  def testNoneCanBecomeParams(self):
    p = Net.Params().FromText(
      f'rate.filters : 3\nrate.cls : type/{__name__}/Conv'
    )
    self.assertEqual(p.rate, Conv.Params().Set(filters=3))

  def testAnotherClassTakesItsDefaults(self):
    p = _Net().FromText(f'stem.cls : type/{__name__}/Pool\nstem.size : 2')
    self.assertEqual(p.stem, Pool.Params().Set(size=2))
    # The same class changes nothing else.
    p = _Net().Set(**{'stem.filters': 9})
    p.FromText(f'stem.cls : type/{__name__}/Conv')
    self.assertEqual(p.stem.filters, 9)

  def testSomeElements(self):
    p = _Net()
    cell = p.cells[0]
    p.FromText("cells[0].filters : 3\ncells[-1].name : 'last'")
    self.assertEqual((p.cells[0].filters, p.cells[1].name), (3, 'last'))
    self.assertIs(p.cells[0], cell)  # Changed in place.
    p.FromText("table['n'] : 4\npair.x : 5\nsizes[1] : 6")
    self.assertEqual((p.table['n'], p.pair, p.sizes), (4, Pair(5, 0), (1, 6)))

  def testResizing(self):
    p = _Net().FromText('cells : list[1]')
    self.assertEqual(p.cells, _Net().cells[:1])
    p.FromText(
      f'cells : list[3]\ncells[1] : 3\ncells[2].cls : type/{__name__}/Pool'
    )
    self.assertEqual(p.cells, [*_Net().cells[:1], 3, Pool.Params()])
    p.FromText("table : dict['n', 'fr']\ntable['fr'] : 4")
    self.assertEqual(p.table, {'n': 3, 'fr': 4})
    # Elements of a container that is given anew may have any type.
    p.FromText(
      'cells : list[2]\ncells[0] : float32\ncells[1] : tuple[1]\n'
      f'cells[1][0].cls : type/{__name__}/Pool'
    )
    self.assertEqual(p.cells, [tf.float32, (Pool.Params(),)])
    p.FromText(f'cells : list[1]\ncells[0].cls : type/{__name__}/Pool')
    self.assertEqual(p.cells, [Pool.Params()])
    p.FromText('cells : []\ntable : {}')
    self.assertEqual((p.cells, p.table), ([], {}))

  def testNumbers(self):
    p = Net.Params().FromText('stem.dropout : 1\nstem.filters : 7')
    self.assertIs(type(p.stem.dropout), int)  # As it was written.
    self.assertEqual(Net.Params().FromText('sizes : [3, 4]').sizes, [3, 4])
    self.assertEqual(Net.Params().FromText('pair : (3, 4)').pair, Pair(3, 4))
    self.assertIsInstance(Net.Params().FromText('pair : (3, 4)').pair, Pair)

  def testValuesWithoutTextMayStay(self):
    thing = _Opaque()
    function = lambda: 3  # noqa: E731
    p = Net.Params().Set(rate=thing, map=NestedMap(f=function))
    p.FromText(p.ToText())
    self.assertIs(p.rate, thing)
    self.assertIs(p.map.f, function)
    with self.assertRaisesRegex(
      ValueError, "^line 8: 'rate': .* has no text to be read from$"
    ):
      Net.Params().FromText(Net.Params().Set(rate=thing).ToText())

  def testTheLastLineWins(self):
    self.assertEqual(_Net().FromText('rate : 1\nrate : 2').rate, 2)


class ErrorTest(_TestCase):
  @parameterized.parameters(
    (
      'cells[0].fliters : 3',
      "line 3: 'cells[0].fliters' is not defined in Conv.Params; did you mean "
      "'filters'?",
    ),
    (
      'nmae.x : 3',
      "line 3: 'nmae' is not defined in Net.Params; did you mean 'name'?",
    ),
    ('cells[2].name : 3', 'line 3: cells has no element [2]: its length is 2'),
    ("table['dee'] : 3", "line 3: table has no key 'dee'; did you mean 'de'?"),
    ('sizes.x : 3', "line 3: sizes is of type tuple: 'x' is not inside it"),
    ('stem[0] : 3', "line 3: 'stem[0]' is not defined in Conv.Params; the "
     'params are: cls, dropout, filters, name'),
    ('is_big.x : 3', "line 3: 'is_big' is False: 'x' is not inside it"),
  )  # fmt: skip
  def testUnknown(self, text, message):
    self.assertRefused(AttributeError, text, message)

  @parameterized.parameters(
    (
      "stem.dropout : '0.5'",
      "line 3: 'stem.dropout' is of type float (0.5), not str ('0.5')",
    ),
    (
      'cells[0].filters : 0.5',
      "line 3: 'cells[0].filters' is of type int (8), not float (0.5)",
    ),
    ('is_big : 1', "line 3: 'is_big' is of type bool (False), not int (1)"),
    (
      'stem : 3',
      "line 3: 'stem' is of type Params (<Conv.Params>), not int (3)",
    ),
    ('rate : 1\nsizes : 3', "line 4: 'sizes' is of type tuple ((1, 2)), not "
     'int (3)'),
    ('is_big : list[0]', "line 3: 'is_big' is of type bool (False), not list "
     '([])'),
  )  # fmt: skip
  def testWrongType(self, text, message):
    self.assertRefused(TypeError, text, message)

  @parameterized.parameters(
    (
      'rate 3',
      "line 3: 'rate 3' is not of the form `path : value`, for example "
      "`net.cells[0].name : 'stem'`",
    ),
    (
      '\n# comment\nrate : stem',
      "line 5: 'rate': 'stem' is not a value; a string needs quotes: 'stem'",
    ),
    ('rate :', "line 3: 'rate': '' is not a value; it is empty: write None for "
     'none'),
    ('rate : [3', 'line 3: the bracket [ is never closed'),
    ("rate : 'x", "line 3: the quote ' is never closed"),
    (
      'rate : type/not_there/X',
      "line 3: 'rate': type/not_there/X: module 'not_there' is not imported; "
      'import it before reading this text',
    ),
    (
      'rate.x : 3',
      "line 3: 'rate' is None; to make it Params add the line `rate.cls : "
      'type/module/Name` with their class',
    ),
    (
      'cells : list[3]\ncells[2].name : 3',
      "line 4: 'cells[2]' is new; to make it Params add the line "
      '`cells[2].cls : type/module/Name` with their class',
    ),
    (
      'cells : list[3]',
      "line 3: 'cells[2]' is new and no line gives it a value",
    ),
    (
      'cells : list[1]\ncells[1].name : 3',
      'line 4: cells[1] is outside list[1] of line 3',
    ),
    (
      'cells : list[x]',
      "line 3: 'cells': 'list[x]' is none of list[size], tuple[size], "
      "dict['key', ...], NestedMap['key', ...]",
    ),
    (
      'stem : None\nstem.name : 3',
      "line 3 sets 'stem' as a whole and line 4 something inside it; keep one "
      'of them',
    ),
    (
      'stem.cls : type/not_there/X',
      "line 3: 'stem.cls': type/not_there/X: module 'not_there' is not "
      'imported; import it before reading this text',
    ),
    ('stem.cls : type/math/sqrt', "line 3: 'stem.cls': type/math/sqrt has no "
     'Params()'),
  )  # fmt: skip
  def testMalformed(self, text, message):
    self.assertRefused(ValueError, text, message)

  def testHeadersAreChecked(self):
    for size in ('-1', '1, 2', "'a'", '1.0', ''):
      with self.assertRaisesRegex(ValueError, 'is none of list.size.'):
        _Net().FromText(f'cells : list[{size}]')
    with self.assertRaisesRegex(ValueError, 'is none of list.size.'):
      _Net().FromText("map : NestedMap['a b']")


class DiffTest(_TestCase):
  def testDiff(self):
    old, new = _Net(), _Net()
    self.assertEqual(old.TextDiff(new), '')
    new.name = 'new'
    new.cells[0] = Pool.Params().Set(size=3)
    new.rate = 'x'
    self.assertEqual(
      old.TextDiff(new),
      f"""\
cells[0].cls : type/{__name__}/Conv -> type/{__name__}/Pool
- cells[0].dropout : 0.5
- cells[0].filters : 8
cells[0].name : 'c0' -> ''
name : 'net' -> 'new'
rate : None -> 'x'
+ cells[0].size : 3
""",
    )

  def testEqualIsEmpty(self):
    self.assertEqual(_Net().TextDiff(_Net().Set(**{'stem.filters': 8.0})), '')

  def testWhatTextCannotShow(self):
    old, new = Net.Params().Set(rate=object()), Net.Params().Set(rate=object())
    self.assertEqual(
      old.TextDiff(new),
      '(they differ in a way that their text does not show)\n',
    )


class RandomTree:
  """Random Params, made of everything that can be read back."""

  _TEXT = 'aB_ 0\'"\\\n\t#;:=[](){},.é漢\u2028\x00/'

  def __init__(self, seed):
    self._random = random.Random(seed)

  def _Text(self):
    return ''.join(
      self._random.choices(self._TEXT, k=self._random.randrange(8))
    )

  def Scalar(self):
    r = self._random
    text = self._Text()
    return r.choice(
      [
        None,
        r.random() < 0.5,
        r.randrange(-(10 ** r.randrange(1, 25)), 10**9),
        r.uniform(-1, 1) * 10.0 ** r.randrange(-320, 300),
        r.choice([math.inf, -math.inf, math.nan, 0.0, -0.0]),
        text,
        text.encode(),
        r.choice([tf.float32, tf.bfloat16, tf.string, tf.int64]),
        r.choice([Conv, math.sqrt, int, len, Color]),
        r.choice(list(Color)),
      ]
    )

  def Key(self):
    return self._random.choice(['a', 'b', 'it\'s "x"', 'x.y[0]', 'é', 3, -1])

  def Value(self, depth):
    r = self._random
    kind = r.randrange(10)
    if kind < 4 or not depth:
      return self.Scalar()
    children = [self.Value(depth - 1) for _ in range(r.randrange(4))]
    if kind == 4:
      return children
    if kind == 5:
      return tuple(children)
    if kind == 6:
      return {self.Key(): child for child in children}
    if kind == 7:
      return NestedMap(zip('xyz', children, strict=False))
    if kind == 8:
      return Conv.Params().Set(
        name=self._Text(), filters=r.randrange(99), dropout=r.random()
      )
    return Pool.Params().Set(size=self.Value(depth - 1))

  def Tree(self):
    return Net.Params().Set(
      rate=self.Value(3),
      cells=[self.Value(2) for _ in range(self._random.randrange(4))],
      stem=self._random.choice([None, Conv.Params(), Pool.Params()]),
      map=NestedMap(a=self.Value(2)),
      table={self.Key(): self.Value(2)},
    )


class RandomTreesTest(_TestCase):
  @parameterized.parameters(*range(20))
  def testRoundTrip(self, seed):
    tree = RandomTree(seed)
    for _ in range(20):
      p = tree.Tree()
      text = p.ToText()
      for copied in (p.Copy(), p.Copy().Freeze(), p.Copy().Freeze().Copy()):
        self.assertEqual(copied, p)
        self.assertEqual(copied.ToText(), text)
        self.assertEqual(p.TextDiff(copied), '')
      # Onto defaults, and onto itself.
      for target in (Net.Params(), p.Copy()):
        target.FromText(text)
        self.assertEqual(target, p, text)
        self.assertEqual(target.ToText(), text)

  @parameterized.parameters(*range(5))
  def testDiffsAndPartialErrors(self, seed):
    tree = RandomTree(100 + seed)
    for _ in range(20):
      p, q = tree.Tree(), tree.Tree()
      self.assertEqual(p == q, p.TextDiff(q) == '')
      before = p.ToText()
      # Types may differ before the unknown name comes.
      with self.assertRaises((AttributeError, TypeError)):
        p.FromText(q.ToText() + 'no_such_name : 3')
      self.assertEqual(p.ToText(), before)


class SpeedTest(_TestCase):
  def testThousandsOfCells(self):
    p = Net.Params().Set(
      cells=[
        Net.Params().Set(name=f'cell_{i}', rate=Conv.Params())
        for i in range(1000)
      ]
    )
    # About half a second together; slower machines may take longer, anything
    # quadratic takes minutes.
    start = time.monotonic()
    text = p.ToText()
    q = p.Copy()
    Net.Params().FromText(text)
    q.FromText(text)
    q.Freeze()
    q.Copy()
    self.assertEqual(p, q)
    self.assertLess(time.monotonic() - start, 20)


if __name__ == '__main__':
  absltest.main()
