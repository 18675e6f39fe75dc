"""What runs after what, by control dependencies that hold.

A control dependency on the call of a function, or on a conditional, does not
wait for its results once TensorFlow has inlined it. One on an identity of a
result does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Nest = Any


def Waiting(tensors: Sequence[tf.Tensor]) -> contextlib.AbstractContextManager:
  """A context; the operations made in it run once `tensors` are there."""
  return tf.control_dependencies([tf.identity(x) for x in tensors])


def Identity(nest: Nest) -> Nest:
  """Identities of a nest of tensors, on the current device; None stays."""
  return tf.nest.map_structure(
    lambda x: None if x is None else tf.identity(x), nest
  )


def After(tensors: Sequence[tf.Tensor], nest: Nest) -> Nest:
  """`nest`, to be read once `tensors` are there.

  Args:
    tensors: to wait for.
    nest: of tensors and None.

  Returns:
    The nest of identities.
  """
  with Waiting(tensors):
    return Identity(nest)
