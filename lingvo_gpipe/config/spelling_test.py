"""Tests of spelling."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.config import spelling

_MODELS = [
  'image.digits.AmoebaNetDigits',
  'image.digits.AmoebaNetDigitsLarge',
  'image.imagenet.AmoebaNetD18x512',
  'mt.django.TransformerBig',
]


class SpellingTest(parameterized.TestCase):
  @parameterized.parameters(
    ('num_layer', 'num_layers'),
    ('numlayers', 'num_layers'),
    ('NumLayers', 'num_layers'),
    ('num_layesr', 'num_layers'),
    ('fliters', 'filters'),
    ('layers', 'num_layers'),
  )
  def testFindsTheName(self, wrong, right):
    names = ['num_layers', 'filters', 'dtype', 'random_seed']
    self.assertEqual(spelling.NearNames(wrong, names)[0], right)

  @parameterized.parameters(
    'image.digits.AmobaNetDigits',
    'AmoebaNetDigits',
    'digits.AmoebaNetDigits',
    'image.digits.amoebanet_digits',
    'tasks.image.digits.AmoebaNetDigits',
  )
  def testFindsModels(self, wrong):
    near = spelling.NearNames(wrong, _MODELS)
    self.assertEqual(near[0], 'image.digits.AmoebaNetDigits')

  def testNothingNear(self):
    self.assertEqual(spelling.NearNames('zzz', ['alpha', 'beta']), [])
    self.assertEqual(spelling.NearNames('x', []), [])

  def testAtMostLimit(self):
    names = [f'layer{i}' for i in range(9)]
    self.assertLen(spelling.NearNames('layer', names, limit=4), 4)

  def testHint(self):
    self.assertEqual(
      spelling.Hint('nmae', ['name', 'dtype']), "; did you mean 'name'?"
    )
    self.assertEqual(
      spelling.Hint('layer_d', ['layer_c', 'layer_a', 'layer_b', 'zzz']),
      "; did you mean 'layer_a', 'layer_b' or 'layer_c'?",
    )

  def testHintListsAllWhenNothingIsNear(self):
    self.assertEqual(
      spelling.Hint('zzz', ['beta', 'alpha'], 'params'),
      '; the params are: alpha, beta',
    )
    self.assertEqual(spelling.Hint('zzz', [], 'keys'), '; there are no keys')
    many = [f'p{i:02d}' for i in range(30)]
    self.assertEndsWith(spelling.Hint('zzz', many), 'p18, p19 and 10 more')


if __name__ == '__main__':
  absltest.main()
