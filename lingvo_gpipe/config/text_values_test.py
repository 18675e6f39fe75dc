"""Tests of text_values."""

from __future__ import annotations

import collections
import enum
import functools
import math
import subprocess
import sys

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import child_process, nested_map
from lingvo_gpipe.config import text_values

NestedMap = nested_map.NestedMap
Pair = collections.namedtuple('Pair', ['x', 'y'])


class Color(enum.Enum):
  RED = 1
  BLUE = 'blue'


class Level(enum.IntEnum):
  LOW = 1


class Outer:
  class Inner:
    pass

  @staticmethod
  def Function():
    pass


def Function():
  pass


_EXACT = (
  (None, 'None'),
  (True, 'True'),
  (0, '0'),
  (-(10**30), '-1' + '0' * 30),
  (0.1, '0.1'),
  (-0.0, '-0.0'),
  (1e-300, '1e-300'),
  (5e-324, '5e-324'),
  (1e22, '1e+22'),
  (1 / 3, '0.3333333333333333'),
  (math.inf, 'inf'),
  (-math.inf, '-inf'),
  ('', "''"),
  ('it\'s "x"\n\t\\ ü \u2028', '\'it\\\'s "x"\\n\\t\\\\ ü \\u2028\''),
  ("it's", '"it\'s"'),
  ('# ; [', "'# ; ['"),
  (b'\x00a', "b'\\x00a'"),
  ([], '[]'),
  ((), '()'),
  ((1,), '(1,)'),
  ([1, (2.5, None), ['a']], "[1, (2.5, None), ['a']]"),
  ({}, '{}'),
  ({'b': 1, 2: [-math.inf], (1, 2): True}, "{'b': 1, 2: [-inf], (1, 2): True}"),
  (NestedMap(b=1, a=NestedMap()), "NestedMap({'a': NestedMap({}), 'b': 1})"),
  (tf.float32, 'float32'),
  (tf.bfloat16, 'bfloat16'),
  (tf.string, 'string'),
  (tf.bool, 'bool'),
  ([tf.int8, tf.float16], '[int8, float16]'),
  (Outer, 'type/__main__/Outer'),
  (Outer.Inner, 'type/__main__/Outer.Inner'),
  (Function, 'type/__main__/Function'),
  (Outer.Function, 'type/__main__/Outer.Function'),
  (int, 'type/builtins/int'),
  (len, 'type/builtins/len'),
  (math.sqrt, 'type/math/sqrt'),
  ([NestedMap, int], '[type/lingvo_gpipe.nested_map/NestedMap, '
   'type/builtins/int]'),
  (Color.RED, 'enum/__main__/Color.RED'),
  (Level.LOW, 'enum/__main__/Level.LOW'),
  ({'c': Color.BLUE}, "{'c': enum/__main__/Color.BLUE}"),
)  # fmt: skip


class RoundTripTest(parameterized.TestCase):
  def testExactTexts(self):
    for value, text in _EXACT:
      text = text.replace('__main__', __name__)
      self.assertEqual(text_values.FormatValue(value), text)
      parsed = text_values.ParseValue(text)
      self.assertIs(type(parsed), type(value), text)
      self.assertEqual(parsed, value)
      self.assertNotIn('\n', text)
      # The sign of zero.
      self.assertEqual(text_values.FormatValue(parsed), text)

  def testNan(self):
    self.assertEqual(text_values.FormatValue([math.nan]), '[nan]')
    for text in ('nan', '[nan]'):
      self.assertIn('nan', str(text_values.ParseValue(text)))

  def testFunctionsOfTensorFlow(self):
    for fn in (tf.nn.relu, tf.nn.swish, tf.math.tanh, tf.Variable):
      text = text_values.FormatValue(fn)
      self.assertIs(text_values.ParseValue(text), fn, text)

  def testOtherTypesBecomePlain(self):
    for value, text in (
      (np.float64(0.1), '0.1'),
      (np.float32(0.5), '0.5'),
      (np.int64(3), '3'),
      (np.bool_(True), 'True'),
      (np.str_('a'), "'a'"),
      (Pair(1, 2), '(1, 2)'),
      (collections.OrderedDict(a=1), "{'a': 1}"),
    ):
      self.assertEqual(text_values.FormatValue(value), text)

  @parameterized.parameters(
    (' 3 ', 3),
    ('+3', 3),
    ('.5', 0.5),
    ('5.', 5.0),
    ('1e-3', 0.001),
    ('1E5', 1e5),
    ('1_000', 1000),
    ('0x10', 16),
    ('"a"', 'a'),
    ("'''a\nb'''", 'a\nb'),
    ("'a' 'b'", 'ab'),
    ('1, 2', (1, 2)),
    ('[\n 1,\n 2, # two\n]', [1, 2]),
    ('tf.int32', tf.int32),
    ('half', tf.float16),
  )
  def testWhatPeopleWrite(self, text, value):
    self.assertEqual(text_values.ParseValue(text), value)


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters(
    ('', "'' is not a value; it is empty: write None for none"),
    ('stem', "'stem' is not a value; a string needs quotes: 'stem'"),
    ('[stem]', "'stem' is not a value; a string needs quotes: 'stem'"),
    (
      'a b',
      "'a b' is not a value; write a literal of Python, a dtype or "
      'type/module/Name',
    ),
    (
      'type/no.such_module/Name',
      "type/no.such_module/Name: module 'no.such_module' is not imported; "
      'import it before reading this text',
    ),
    ('type/math/nope', "type/math/nope: module 'math' has no such type"),
    ('type/math/pi', "type/math/pi: module 'math' has no such type"),
    ('enum/math/pi', "enum/math/pi: module 'math' has no such enum"),
    (
      'type/m/f.<locals>.g',
      "'type/m/f.<locals>.g' is not a value: only names of modules can be "
      'looked up, not local ones',
    ),
    (
      'object/m/C',
      "'object/m/C' is not a value: an object of this kind has no text to be "
      'read from',
    ),
    (
      '{[]: 1}',
      "'{[]: 1}' has a key that cannot be one of a dict",
    ),
  )  # fmt: skip
  def testMessages(self, text, message):
    with self.assertRaises(ValueError) as caught:
      text_values.ParseValue(text)
    self.assertEqual(str(caught.exception), message)

  @parameterized.parameters(
    '__import__("os").getcwd()', 'open("x")', 'lambda: 3', '[x for x in "ab"]',
    '1 + 2', '2 ** 9', 'f"{1}"', '3j', '...', 'not 1', '-True', "-'a'",
    '{1, 2}', '{**{}}', 'NestedMap(a=1)', 'NestedMap([1])', 'math.pi', 'tf.nn',
    'x[0]', '[1', '1]', "'a", 'a=3', '\0', '[' * 5000, '9' * 5000,
    "NestedMap({'a b': 1})", "NestedMap({'keys': 1})",
  )  # fmt: skip
  def testNothingElseIsRead(self, text):
    with self.assertRaises(ValueError):
      text_values.ParseValue(text)

  def testNothingIsImported(self):
    module = 'wave'  # In the standard library; nobody has imported it.
    self.assertNotIn(module, sys.modules)
    with self.assertRaisesRegex(ValueError, 'is not imported'):
      text_values.ParseValue(f'type/{module}/open')
    self.assertNotIn(module, sys.modules)

  def testOpaqueValues(self):
    partial = functools.partial(int, base=2)
    text = text_values.FormatValue(partial)
    self.assertEqual(text, 'object/functools/partial')
    local = text_values.FormatValue(lambda: 3)
    self.assertStartsWith(local, f'type/{__name__}/ErrorTest.testOpaqueValues.')


class TypeProblemTest(parameterized.TestCase):
  @parameterized.parameters(
    (None, 3), (3, None), (1.0, 2), (1.0, 2.0), ((1,), [2]), ([1], (2,)),
    ({}, NestedMap()), (NestedMap(), {}), (tf.float32, tf.int8), (int, len),
    (Color.RED, Color.BLUE), (Pair(1, 2), (3, 4)), (np.float64(1), 2),
  )  # fmt: skip
  def testFine(self, old, new):
    self.assertEqual(text_values.TypeProblem(old, new), '')

  @parameterized.parameters(
    (0.5, 'a', "is of type float (0.5), not str ('a')"),
    (3, 0.5, 'is of type int (3), not float (0.5)'),
    (3, True, 'is of type int (3), not bool (True)'),
    (0.5, True, 'is of type float (0.5), not bool (True)'),
    (True, 1, 'is of type bool (True), not int (1)'),
    ('a', 3, "is of type str ('a'), not int (3)"),
    ([1], {}, 'is of type list ([1]), not dict ({})'),
    ([1], 1, 'is of type list ([1]), not int (1)'),
    (tf.int8, 'int8', "is of type dtype (int8), not str ('int8')"),
    (
      int,
      'int',
      "is of type class or function (type/builtins/int), not str ('int')",
    ),
    (Color.RED, Level.LOW, 'is of type Color (.*), not Level (.*)'),
    ('x' * 99, 3, f"is of type str ('{'x' * 56}...), not int (3)"),
  )
  def testProblems(self, old, new, message):
    problem = text_values.TypeProblem(old, new)
    if '.*' in message:
      self.assertRegex(problem, message.replace('(', r'\(').replace(')', r'\)'))
    else:
      self.assertEqual(problem, message)


class ImportTest(absltest.TestCase):
  def testNoTensorFlow(self):
    code = (
      'import sys\n'
      'from lingvo_gpipe import base_model_params, hyperparams, nested_map\n'
      'from lingvo_gpipe import registry\n'
      'from lingvo_gpipe.config import params_override\n'
      'p = hyperparams.Params()\n'
      'p.Define("a", [1], "")\n'
      'p.Copy().FromText(p.ToText())\n'
      'params_override.ApplyOverride(p, "a=[2]")\n'
      'sys.exit("tensorflow" in sys.modules)\n'
    )
    environment = {'PYTHONPATH': child_process.PythonPath()}
    result = subprocess.run(
      [sys.executable, '-c', code], env=environment, check=False
    )
    self.assertEqual(result.returncode, 0)


if __name__ == '__main__':
  absltest.main()
