"""Activation functions by name, so that params can name them."""

from __future__ import annotations

import tensorflow as tf

_FUNCTIONS = {
  'gelu': tf.nn.gelu,
  'relu': tf.nn.relu,
  'sigmoid': tf.nn.sigmoid,
  'swish': tf.nn.silu,
  'tanh': tf.nn.tanh,
}

NAMES = ('none', *sorted(_FUNCTIONS))


def Check(name: str, path: str) -> None:
  """Raises ValueError unless `name` is in NAMES.

  Args:
    name: the value of a layer's param `activation`.
    path: of the layer, for the message.
  """
  if name not in NAMES:
    raise ValueError(
      f'{path}: activation={name!r} is not known; use one of {", ".join(NAMES)}'
    )


def Apply(name: str, inputs: tf.Tensor) -> tf.Tensor:
  """The function called `name` of the inputs; 'none' returns them."""
  return _FUNCTIONS[name](inputs) if name != 'none' else inputs
