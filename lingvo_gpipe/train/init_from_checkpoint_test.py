"""Tests of init_from_checkpoint."""

import os

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import weights
from lingvo_gpipe.config import params_override
from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  init_from_checkpoint,
)

_THEIRS = {
  'image/stem/w': [3, 4],
  'image/stem/w/ema': [3, 4],
  'image/stem/w/momentum': [3, 4],
  'image/norm/mean': [4],
  'image/head/w': [4, 10],
  'image/old_head/w': [4, 5],
  'learner/num_skipped': [],
}


def _Spec(path, shape, dtype=tf.float32):
  return weights.VariableSpec(
    path=path,
    shape=tuple(shape),
    dtype=dtype,
    init=weights.WeightInit.Constant(0.0),
    trainable=True,
    collections=(),
    seed=0,
  )


def _Specs(root='image', head=10, **dtypes):
  """Of a model like that of _THEIRS, without slots and the old head."""
  shapes = {'stem/w': [3, 4], 'norm/mean': [4], 'head/w': [4, head]}
  return [
    _Spec(f'{root}/{k}', v, dtypes.get(k[:4], tf.float32))
    for k, v in shapes.items()
  ]


def _InitFrom(checkpoint_path, **params):
  p = init_from_checkpoint.InitFromCheckpoint.Params()
  return p.Set(checkpoint=checkpoint_path, **params).Instantiate()


class InitFromCheckpointTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.values = {
      name: np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(
        shape
      )
      + 100 * i
      for i, (name, shape) in enumerate(_THEIRS.items())
    }
    cls.logdir = absltest.get_default_test_tmpdir() + '/other'
    saver = checkpoint.Checkpointer(
      os.path.join(cls.logdir, 'train'),
      {name: tf.Variable(value) for name, value in cls.values.items()},
      model='image.imagenet.Big',
    )
    for step in (100, 200):
      cls.prefix = saver.Save(step)

  def _Apply(self, plan, specs):
    """{path: value} after the plan was applied to variables of -1."""
    variables = {
      spec.path: tf.Variable(-tf.ones(spec.shape, spec.dtype)) for spec in specs
    }
    plan.Apply(variables)
    return {path: v.numpy() for path, v in variables.items()}

  def testSamePathsAndAverages(self):
    specs = _Specs()
    for use_ema, source in (
      (True, 'image/stem/w/ema'),
      (False, 'image/stem/w'),
    ):
      plan = _InitFrom(self.logdir, use_ema=use_ema).Plan(specs)
      self.assertEqual(plan.prefix, self.prefix)
      self.assertEqual(plan.random, ())
      values = self._Apply(plan, specs)
      self.assertLen(values, 3)
      np.testing.assert_array_equal(values['image/stem/w'], self.values[source])
      for path in ('image/norm/mean', 'image/head/w'):
        np.testing.assert_array_equal(values[path], self.values[path])
      self.assertEqual(
        plan.ToText(),
        f'3 variables start from {self.prefix} (model image.imagenet.Big, step '
        f'200){", 1 of them from averages" * use_ema}; 0 stay random',
      )

  @parameterized.parameters('', 'train', 'train/ckpt-00000100')
  def testWaysToNameACheckpoint(self, path):
    plan = _InitFrom(os.path.join(self.logdir, path)).Plan(_Specs())
    self.assertEqual(plan.step, 100 if '100' in path else 200)

  def testRulesAndExclusions(self):
    specs = _Specs('pets', head=37)
    plan = _InitFrom(
      self.logdir,
      rules=[
        # Only the first that fits counts.
        (r'norm/(?P<what>.*)', r'norm/\g<what>'),
        (r'pets/(.*)', r'image/\1'),
        (r'stem/w', r'none'),
      ],
      exclude=['head/.*'],
    )
    # The rest of a path stays as it is, so that of the first rule is not there.
    with self.assertRaisesRegex(
      checkpoint.CheckpointError, r'1 are not in it: pets/norm/mean\.'
    ):
      plan.Plan(specs)
    plan = _InitFrom(
      self.logdir, rules=[(r'pets/(.*)', r'image/\1')], exclude=['head/.*']
    ).Plan(specs)
    self.assertEqual(plan.random, ('pets/head/w',))
    self.assertEndsWith(plan.ToText(), '; 1 stay random: pets/head/w')
    values = self._Apply(plan, specs)
    np.testing.assert_array_equal(
      values['pets/stem/w'], self.values['image/stem/w/ema']
    )
    np.testing.assert_array_equal(values['pets/head/w'], -np.ones([4, 37]))

  def testPatternsBeginWithAName(self):
    specs = [_Spec('image/head/w', [4, 10]), _Spec('image/old_head/w', [4, 5])]
    for pattern in ('head/.*', '.*/head/w', 'image/(head|tail)/w'):
      plan = _InitFrom(self.logdir, exclude=[pattern]).Plan(specs)
      self.assertEqual(plan.random, ('image/head/w',), pattern)

  def testFloatingPointIsConverted(self):
    specs = _Specs(stem=tf.float64, head=10)
    plan = _InitFrom(self.logdir, use_ema=False).Plan(specs)
    value = self._Apply(plan, specs)['image/stem/w']
    self.assertEqual(value.dtype, np.float64)
    np.testing.assert_array_equal(value, self.values['image/stem/w'])

  def testAllThatDoesNotFitIsListed(self):
    specs = [
      *_Specs(head=37),
      _Spec('image/extra/w', [2]),
      _Spec('image/extra/b', [2]),
      _Spec('image/old_head/w', [4, 5], tf.int32),
    ]
    with self.assertRaises(checkpoint.CheckpointError) as caught:
      _InitFrom(self.logdir).Plan(specs)
    self.assertEqual(
      str(caught.exception),
      f'variables of the model do not fit {self.prefix}: 2 are not in it: '
      'image/extra/w, image/extra/b; 2 have another shape or dtype: '
      'image/head/w (float32 [4, 37] here, float32 [4, 10] there), '
      'image/old_head/w (int32 [4, 5] here, float32 [4, 5] there). Either add '
      'them to train.init_from.exclude to start at random, as in '
      "['image/extra/.*', 'image/head/.*', 'image/old_head/.*'], or say in "
      'train.init_from.rules what they are called there',
    )

  def testTheAdviceForAnotherRootWorks(self):
    with self.assertRaises(checkpoint.CheckpointError) as caught:
      _InitFrom(self.logdir).Plan(_Specs('pets'))
    rules = str(caught.exception).rpartition(', as in ')[2]
    self.assertEqual(rules, repr([('pets/(.*)', r'image/\1')]))
    # As it would be typed.
    p = init_from_checkpoint.InitFromCheckpoint.Params()
    params_override.ApplyOverride(p, f'rules={rules}')
    init_from = p.Set(checkpoint=self.logdir).Instantiate()
    self.assertLen(init_from.Plan(_Specs('pets')).sources, 3)
    self.assertEqual(p.Copy().FromText(p.ToText()), p)

  def testPatternsThatFitNothingAreNoted(self):
    # A list may serve several models, but a slip in it is to be seen.
    plan = _InitFrom(
      self.logdir, rules=[('haed/.*', 'x')], exclude=['head/.*', 'aux/.*']
    ).Plan(_Specs())
    self.assertEndsWith(
      plan.ToText(),
      "1 stay random: image/head/w; no variable fits 'haed/.*', 'aux/.*'",
    )

  @parameterized.parameters(
    ({'rules': [('head/.*', r'\1')]}, "rules: .* go with the pattern 'head"),
    ({'rules': [('head/.*', r'\g<a>')]}, 'rules: .*unknown group name'),
  )
  def testReplacementsThatCannotBeMeant(self, params, message):
    with self.assertRaisesRegex(
      checkpoint.CheckpointError, f'^train.init_from.{message}'
    ):
      _InitFrom(self.logdir, **params).Plan(_Specs())

  @parameterized.parameters(
    ({'exclude': ['(']}, r"exclude: '\(' is not a regular expression"),
    ({'exclude': [3]}, 'exclude: 3 is not a regular expression'),
    ({'rules': [('[', 'x')]}, r"rules: '\[' is not a regular expression"),
    ({'rules': ['ab']}, "rules: 'ab' is not a pair"),
    ({'rules': [('a', 'b', 'c')]}, 'rules: .* is not a pair'),
    ({'rules': [('a', 1)]}, 'rules: .* is not a pair'),
  )
  def testMalformed(self, params, message):
    with self.assertRaisesRegex(ValueError, f'^train.init_from.{message}'):
      _InitFrom('', **params)

  def testNoCheckpoint(self):
    empty = self.create_tempdir().full_path
    with self.assertRaisesRegex(
      checkpoint.CheckpointError, r'\(--init_checkpoint\) holds no checkpoint'
    ):
      _InitFrom(empty).Plan(_Specs())
    with self.assertRaisesRegex(
      checkpoint.CheckpointError, 'ckpt-00000300.json is missing; complete'
    ):
      _InitFrom(f'{self.logdir}/train/ckpt-00000300').Plan(_Specs())

  def testDamaged(self):
    folder = self.create_tempdir().full_path
    saver = checkpoint.Checkpointer(
      folder, {k: tf.Variable(v) for k, v in self.values.items()}
    )
    plan = _InitFrom(saver.Save(1)).Plan(_Specs())
    (data,) = [f for f in checkpoint_files.Files(plan.prefix) if '.data' in f]
    with open(data, 'r+b') as f:
      f.write(b'x' * 200)
    with self.assertRaisesRegex(checkpoint.CorruptError, '.data-00000'):
      self._Apply(plan, _Specs())


if __name__ == '__main__':
  absltest.main()
