"""A SavedModel that says how light a picture is, for tests."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf


def Picture(value: int) -> bytes:
  """The contents of a PNG file of one colour.

  Args:
    value: 0 to 255.

  Returns:
    Its bytes.
  """
  return tf.io.encode_png(np.full([9, 7, 3], value, np.uint8)).numpy()


def Write(path: str, class_names: Sequence[str] = ()) -> str:
  """Writes a model of two classes, dark and light.

  Args:
    path: of the directory.
    class_names: for its file classes.txt; none where empty.

  Returns:
    `path`.
  """

  def _Light(contents):
    image = tf.io.decode_image(contents, channels=3, expand_animations=False)
    return tf.reduce_mean(tf.cast(image, tf.float32)) / 255.0

  def _Serve(contents):
    light = tf.map_fn(_Light, contents, fn_output_signature=tf.float32)
    return {'probabilities': tf.stack([1.0 - light, light], -1)}

  spec = tf.TensorSpec([None], tf.string, 'image_bytes')
  function = tf.function(_Serve, input_signature=[spec])
  tf.saved_model.save(
    tf.Module(),
    path,
    signatures={'image_bytes': function.get_concrete_function()},
  )
  if class_names:
    file = os.path.join(path, 'assets', 'classes.txt')
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, 'w', encoding='utf-8') as f:
      f.writelines(f'{name}\n' for name in class_names)
  return path
