"""Rings: where what a partition has received waits for its use.

A ring is as many slots as a schedule's table needs at once (loop_table.Ring),
and a dummy one for what arrives in rows in which nothing was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe.gpipe.schedules import loop_table


def Empty(spec: tf.TensorSpec) -> tf.Tensor:
  """What travels in rows in which nothing is sent: as little as possible."""
  shape = [0, *spec.shape[1:]] if spec.shape.rank else []
  return tf.zeros(shape, spec.dtype)


def _RelaxedShape(spec: tf.TensorSpec) -> list[int | None]:
  """A shape that both Empty and the real thing have."""
  return [None, *spec.shape[1:]] if spec.shape.rank else []


def Nothing(spec: tf.TensorSpec) -> tf.Tensor:
  """Empty, as a loop variable that becomes the real thing later."""
  return tf.compat.v1.placeholder_with_default(Empty(spec), _RelaxedShape(spec))


class Ring:
  """TensorArrays of as many slots as a table needs, and a dummy one.

  Attributes:
    specs: of the leaves of an element.
  """

  def __init__(self, device: str, ring: loop_table.Ring, specs: Sequence[Any]):
    self._device = device
    self._ring = ring
    self.specs = list(specs)

  def Create(self) -> list[tf.TensorArray]:
    with tf.device(self._device):
      return [
        tf.TensorArray(
          spec.dtype,
          self._ring.size + 1,
          element_shape=_RelaxedShape(spec),
          clear_after_read=False,
        )
        for spec in self.specs
      ]

  def Receive(self, arrays, row: tf.Tensor, leaves) -> list[tf.TensorArray]:
    """Writes what arrives in a row; in other rows, to the dummy slot."""
    with tf.device(self._device):
      slot = tf.gather(self._ring.writes, row)
      return [a.write(slot, x) for a, x in zip(arrays, leaves, strict=True)]

  def Write(self, arrays, index: tf.Tensor, leaves) -> list[tf.TensorArray]:
    """Writes the element of micro-batch `index`."""
    slot = tf.gather(self._ring.slots, index)
    return [a.write(slot, x) for a, x in zip(arrays, leaves, strict=True)]

  def Read(self, arrays, index: tf.Tensor) -> list[tf.Tensor]:
    """Reads the element of micro-batch `index`."""
    slot = tf.gather(self._ring.slots, index)
    leaves = [array.read(slot) for array in arrays]
    return [
      tf.ensure_shape(x, spec.shape)
      for x, spec in zip(leaves, self.specs, strict=True)
    ]
