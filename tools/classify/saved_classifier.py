"""A SavedModel that tools/export wrote, as a function of picture files' bytes.

It needs TensorFlow and none of the code that trained the model.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from lingvo_gpipe import user_error

_SIGNATURE, _OUTPUT = 'image_bytes', 'probabilities'


class BadPictureError(Exception):
  """Among the pictures is one that cannot be classified; says why."""


class SavedClassifier:
  """A loaded model.

  Args:
    path: directory of a SavedModel with the signature `image_bytes`.

  Attributes:
    class_names: of all classes; their numbers where the model has no names.

  Raises:
    UserError: for a directory that holds no such model.
  """

  def __init__(self, path: str):
    flag = f'--saved_model={path}'
    with user_error.Expected(OSError, tf.errors.OpError, prefix=f'{flag}: '):
      self._model = tf.saved_model.load(path)
    signature = self._model.signatures.get(_SIGNATURE)
    outputs = signature.structured_outputs if signature else {}
    if _OUTPUT not in outputs:
      raise user_error.UserError(
        f'{flag} has no signature {_SIGNATURE!r} that gives {_OUTPUT}; its '
        f'signatures are {", ".join(sorted(self._model.signatures)) or "none"}'
        '. python -m tools.export writes one that has it, for models of images'
      )
    (self._argument,) = signature.structured_input_signature[1]
    self._function = signature
    self.class_names = _ClassNames(path, outputs[_OUTPUT].shape[-1])

  def Probabilities(self, pictures: Sequence[bytes]) -> np.ndarray:
    """Classifies pictures.

    Args:
      pictures: contents of JPEG, PNG, BMP or GIF files.

    Returns:
      float32 [pictures, classes].

    Raises:
      BadPictureError: where one of them is none of these. With a single
        picture it is known which.
    """
    try:
      outputs = self._function(**{self._argument: tf.constant(pictures)})
    except tf.errors.InvalidArgumentError as e:
      raise BadPictureError(_Reason(e)) from e
    return outputs[_OUTPUT].numpy()


def _ClassNames(path: str, num_classes: int) -> list[str]:
  try:
    file = os.path.join(path, 'assets', 'classes.txt')
    with open(file, encoding='utf-8') as f:
      names = f.read().splitlines()
  except FileNotFoundError:
    return [str(i) for i in range(num_classes)]
  if len(names) != num_classes:
    raise user_error.UserError(
      f'{file} has {len(names)} lines, but the model {num_classes} classes; it '
      'must have the name of a class in each line'
    )
  return names


def _Reason(error: tf.errors.OpError) -> str:
  """What an operation said, out of all that TensorFlow puts around it."""
  lines = [line.strip() for line in error.message.splitlines()]
  # The next line is where it happened: `[[{{node decode_image}}]] [Op:...]`.
  for line, following in itertools.pairwise(lines):
    if following.startswith('[['):
      return line
  return lines[0]
