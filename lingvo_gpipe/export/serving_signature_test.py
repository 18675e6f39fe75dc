"""Tests of serving_signature."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.export import serving_signature


def _Signature(spec):
  return serving_signature.ServingSignature(spec, lambda x: {}, lambda x: {})


class ServingSignatureTest(parameterized.TestCase):
  def testAnySizeOfBatch(self):
    spec = tf.TensorSpec([None, 3], tf.float32, 'points')
    self.assertIs(_Signature(spec).input_spec, spec)

  @parameterized.named_parameters(
    ('NoName', tf.TensorSpec([None, 3], tf.float32)),
    ('Scalar', tf.TensorSpec([], tf.float32, 'x')),
    ('UnknownRank', tf.TensorSpec(None, tf.float32, 'x')),
    ('FixedBatch', tf.TensorSpec([4, 3], tf.float32, 'x')),
  )
  def testBadSpec(self, spec):
    with self.assertRaisesRegex(ValueError, r'a named tensor \[None, ...\]'):
      _Signature(spec)


if __name__ == '__main__':
  absltest.main()
