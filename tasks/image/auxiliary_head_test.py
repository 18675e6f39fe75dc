"""Tests of auxiliary_head."""

import tensorflow as tf
from absl.testing import parameterized

from lingvo_gpipe import fprop_context, nested_map
from lingvo_gpipe.layers import gradient_check
from tasks.image import auxiliary_head


def _Params(**kwargs):
  return auxiliary_head.AuxiliaryHead.Params().Set(
    name='aux', input_dim=8, image_size=8, num_classes=4, **kwargs
  )


def _Layer(**kwargs):
  layer = _Params(dtype=tf.float64, **kwargs).Instantiate()
  layer.InstantiateVariables()
  return layer


def _Inputs():
  batch = nested_map.NestedMap(
    labels=tf.constant([0, 1, 2]), weights=tf.constant([1.0, 0.5, 0.0])
  )
  return gradient_check.Draw([3, 8, 8, 8], 1), batch


def _AuxLosses(layer, inputs, batch, do_eval=False):
  with fprop_context.FPropContext(do_eval=do_eval) as context:
    outputs = layer(inputs, batch)
  return outputs, context.aux_losses


class AuxiliaryHeadTest(tf.test.TestCase, parameterized.TestCase):
  def testInputsPass(self):
    layer, (x, batch) = _Layer(), _Inputs()
    for do_eval in (False, True):
      pair = (x, None)
      outputs, unused_losses = _AuxLosses(layer, pair, batch, do_eval)
      self.assertIs(outputs, pair)

  def testLossInTrainingOnly(self):
    layer, (x, batch) = _Layer(), _Inputs()
    unused_outputs, losses = _AuxLosses(layer, x, batch)
    self.assertEqual(list(losses), ['aux/loss'])
    self.assertEqual(_AuxLosses(layer, x, batch, do_eval=True)[1], {})

  def testWeights(self):
    x, batch = _Inputs()
    layer = _Layer(weight=0.4)
    total = _AuxLosses(layer, x, batch)[1]['aux/loss']
    twice = _Params(dtype=tf.float64, weight=0.8).Instantiate()
    with fprop_context.FPropContext(do_eval=False) as context:
      twice.FProp(layer.theta, x, batch)
    self.assertAllClose(context.aux_losses['aux/loss'], 2.0 * total)
    self.assertGreater(float(total), 0.0)
    batch.weights = tf.zeros([3])
    self.assertAllEqual(_AuxLosses(layer, x, batch)[1]['aux/loss'], 0.0)

  def testMixup(self):
    x, batch = _Inputs()
    layer = _Layer(mixup=True)
    self.assertLen(layer.BATCH_FIELDS, 4)

    def _Loss(labels, mixed_labels, mix):
      batch.labels, batch.mixed_labels = labels, mixed_labels
      batch.mix = tf.fill([3], tf.constant(mix, tf.float64))
      return _AuxLosses(layer, x, batch)[1]['aux/loss']

    first, second = tf.constant([0, 1, 2]), tf.constant([3, 3, 0])
    alone = [_Loss(labels, first, 1.0) for labels in (first, second)]
    self.assertNotAllClose(*alone)
    self.assertAllClose(
      _Loss(first, second, 0.25), 0.25 * alone[0] + 0.75 * alone[1]
    )

  @parameterized.parameters((5, 1), (7, 1), (8, 2), (14, 4), (30, 9))
  def testSecondKernelCoversTheImage(self, image_size, size):
    layer = _Params().Set(image_size=image_size).Instantiate()
    spec = layer.VariableSpecs().features.conv.w
    self.assertEqual(spec.shape, (size, size, 51, 307))

  def testImageTooSmall(self):
    with self.assertRaisesRegex(
      ValueError, 'aux: images of 4 x 4 are too small'
    ):
      _Params().Set(image_size=4).Instantiate()


if __name__ == '__main__':
  tf.test.main()
