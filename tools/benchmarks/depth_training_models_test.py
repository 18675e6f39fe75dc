"""Tests of depth_training_models."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import nested_map, user_error
from lingvo_gpipe.layers import softmax
from tasks.mt import test_translation_data, test_vocabulary
from tools.benchmarks import depth_training_models

_SHAPE = depth_training_models.Shape(
  num_layers=2, dim=8, hidden_dim=16, num_heads=2, head_dim=4
)
_VOCAB_SIZE = test_vocabulary.Get().size


def _Cells(architecture, use_norm=False, scale=False, clip=None):
  return architecture.Cells(
    _SHAPE,
    use_norm=use_norm,
    scale_feed_forward=scale,
    logits_abs_max=clip,
  )


def _Paths(p):
  specs = p.Instantiate().VariableSpecs()
  return [spec.path for spec in tf.nest.flatten(specs)]


class DepthTrainingModelsTest(parameterized.TestCase):
  @parameterized.parameters(
    (depth_training_models.LanguageModel(), [1, 2]),
    (depth_training_models.EncoderDecoder(), [1, 2, 4, 5]),
  )
  def testCells(self, architecture, blocks):
    plain = _Cells(architecture)
    treated = _Cells(architecture, use_norm=True, scale=True, clip=15.0)
    self.assertLen(plain, blocks[-1] + 2)
    for i in blocks:
      self.assertEqual(plain[i].feed_forward_init_scale, 1.0)
      self.assertEqual(treated[i].feed_forward_init_scale, 0.5)
      self.assertFalse(
        [x for x in _Paths(plain[i]) if x.endswith(('/b', '/beta'))]
      )
    self.assertFalse([x for x in _Paths(plain[-1]) if 'norm' in x])
    self.assertNotEmpty([x for x in _Paths(treated[-1]) if 'norm' in x])
    self.assertEqual(treated[-1].softmax.logits_abs_max, 15.0)

  def testTranslationClipsWithoutNorm(self):
    architecture = depth_training_models.EncoderDecoder()
    self.assertIsNone(_Cells(architecture)[-1].logits_abs_max)
    self.assertEqual(_Cells(architecture, clip=9.0)[-1].logits_abs_max, 9.0)

  def testStreamSoftmax(self):
    p = _Cells(depth_training_models.EncoderDecoder(vocab_size=5))[-1]
    x = tf.constant(np.random.RandomState(1).normal(size=[2, 3, 8]), tf.float32)
    batch = nested_map.NestedMap(
      labels=tf.constant([[1, 2, 3], [4, 0, 0]]),
      target_paddings=tf.constant([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
      weights=tf.ones([2]),
    )
    layer = p.Instantiate()
    layer.InstantiateVariables()
    theta = layer.theta
    actual = layer.FProp(theta, nested_map.NestedMap(x=x, source=x), batch)
    plain = softmax.SoftmaxLoss.Params().Set(
      name='plain', dim=8, vocab_size=5, paddings_field='target_paddings'
    )
    expected = plain.Instantiate().FProp(theta, x, batch)
    self.assertEqual(expected.keys(), actual.keys())
    tf.nest.map_structure(np.testing.assert_array_equal, actual, expected)

  def testInputs(self):
    folder = self.create_tempdir().full_path
    test_translation_data.Write(folder)
    language = depth_training_models.LanguageModel()
    translation = depth_training_models.EncoderDecoder(folder, _VOCAB_SIZE)
    for architecture in (language, translation):
      first, again, other = (
        next(
          iter(
            architecture.Input(
              batch_size=2, sequence_length=64, seed=seed
            ).Dataset()
          )
        )
        for seed in (1, 1, 2)
      )
      self.assertEqual(first['labels'].shape, [2, 64])
      np.testing.assert_array_equal(first['labels'], again['labels'])
      self.assertFalse(np.array_equal(first['labels'], other['labels']))

  def testMistake(self):
    folder = self.create_tempdir().full_path
    test_translation_data.Write(folder)
    architecture = depth_training_models.EncoderDecoder(folder, 4000)
    generator = architecture.Input(batch_size=2, sequence_length=64, seed=1)
    with self.assertRaisesRegex(user_error.UserError, 'vocab_size=4000'):
      generator.Dataset()


if __name__ == '__main__':
  absltest.main()
