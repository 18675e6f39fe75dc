"""How image classifiers are called once they are exported.

  serving_default  images: floats as the network sees them in evaluation
  image_bytes      image_bytes: contents of JPEG, PNG, BMP or GIF files

Both give `logits`, `probabilities` and `classes`, the most likely ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.export import serving_signature

# Of red, green and blue in the luminance that grey pictures show, by ITU-R
# BT.601, as in JPEG.
_LUMINANCE = (0.299, 0.587, 0.114)


def Signatures(
  image_shape: Sequence[int],
  from_bytes: Callable[[tf.Tensor], tf.Tensor],
  *,
  field: str = 'inputs',
) -> dict[str, serving_signature.ServingSignature]:
  """The signatures of an image classifier.

  Args:
    image_shape: height, width, channels of the images in a batch.
    from_bytes: makes such an image out of the contents of a file, a string
      scalar, as evaluation does it.
    field: of the batch that has the images.

  Returns:
    For the input generator's ServingSignatures().
  """
  image_shape = list(image_shape)
  image_spec = tf.TensorSpec(image_shape, tf.float32)

  def _FromBytes(contents):  # [batch] -> [batch, height, width, channels]
    images = tf.map_fn(from_bytes, contents, fn_output_signature=image_spec)
    return {field: images}

  return {
    'serving_default': serving_signature.ServingSignature(
      tf.TensorSpec([None, *image_shape], tf.float32, 'images'),
      lambda images: {field: images},
      ClassifierOutputs,
    ),
    'image_bytes': serving_signature.ServingSignature(
      tf.TensorSpec([None], tf.string, 'image_bytes'),
      _FromBytes,
      ClassifierOutputs,
    ),
  }


def ClassifierOutputs(outputs: nested_map.NestedMap) -> dict[str, tf.Tensor]:
  """What an exported classifier returns.

  Args:
    outputs: of the last cell in evaluation, with logits [batch, num_classes].

  Returns:
    logits and probabilities, float32 [batch, num_classes], and classes, int64
    [batch], the most likely ones.

  Raises:
    ValueError: where the last cell returns no logits.
  """
  if 'logits' not in outputs:
    raise ValueError(
      'the last cell of a classifier must return `logits` in evaluation; this '
      f'one returns {", ".join(sorted(outputs))}'
    )
  logits = tf.cast(outputs.logits, tf.float32)
  return {
    'logits': logits,
    'probabilities': tf.nn.softmax(logits),
    'classes': tf.argmax(logits, axis=-1),
  }


def DecodeGrey(contents: tf.Tensor) -> tf.Tensor:
  """A grey picture, whatever colours its file has.

  TensorFlow's own conversion cannot do so for BMP and GIF. Transparency is
  ignored; of an animation the first picture is taken.

  Args:
    contents: of a JPEG, PNG, BMP or GIF file, string scalar.

  Returns:
    float32 [height, width, 1] in [0, 255].
  """
  picture = tf.io.decode_image(contents, expand_animations=False)
  picture = tf.cast(picture, tf.float32)
  grey = tf.cond(
    # One channel, or another for transparency.
    tf.shape(picture)[-1] < 3,
    lambda: picture[..., :1],
    lambda: tf.reduce_sum(
      picture[..., :3] * tf.constant(_LUMINANCE), -1, keepdims=True
    ),
  )
  return tf.ensure_shape(grey, [None, None, 1])
