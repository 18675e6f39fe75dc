"""Tests of ring."""

import numpy as np
import tensorflow as tf

from lingvo_gpipe.gpipe import ring
from lingvo_gpipe.gpipe.schedules import loop_table

_SPECS = [
  tf.TensorSpec([2, 3], tf.float32),
  tf.TensorSpec([2], tf.int32),
  tf.TensorSpec([], tf.float64),
]


def _Element(value):
  return [tf.cast(tf.fill(s.shape, value), s.dtype) for s in _SPECS]


class RingTest(tf.test.TestCase):
  def testMicroBatchesTakeTurnsAndNothingGoesToTheDummy(self):
    # Micro-batches 0 and 2 share a slot; nothing arrives in row 1.
    table = loop_table.Ring(
      size=2,
      slots=np.array([0, 1, 0], np.int32),
      writes=np.array([0, 2, 1, 0], np.int32),
    )
    buffer = ring.Ring('', table, _SPECS)

    def _Run():
      arrays = buffer.Create()
      seen = []
      for row, value in enumerate((10, None, 11, 12)):
        leaves = [ring.Nothing(s) for s in _SPECS]
        if value is not None:
          leaves = _Element(value)
        arrays = buffer.Receive(arrays, tf.constant(row), leaves)
        if row == 1:
          seen.append(buffer.Read(arrays, tf.constant(0)))
      seen += [buffer.Read(arrays, tf.constant(i)) for i in (1, 2)]
      return seen

    seen = tf.function(_Run, autograph=False)()
    for element, value in zip(seen, (10, 11, 12), strict=True):
      for leaf, spec, expected in zip(
        element, _SPECS, _Element(value), strict=True
      ):
        self.assertEqual(leaf.shape, spec.shape)
        self.assertAllEqual(leaf, expected)

  def testWriteGoesWhereReadLooks(self):
    table = loop_table.Ring(
      size=1, slots=np.zeros(2, np.int32), writes=np.zeros(2, np.int32)
    )
    buffer = ring.Ring('', table, _SPECS)

    def _Run():
      arrays = buffer.Create()
      seen = []
      for index in range(2):
        arrays = buffer.Write(arrays, tf.constant(index), _Element(5 + index))
        seen.append(buffer.Read(arrays, tf.constant(index)))
      return seen

    first, second = tf.function(_Run, autograph=False)()
    self.assertAllEqual(first[1], [5, 5])
    self.assertAllEqual(second[1], [6, 6])

  def testAnEmptyElementIsOfTheSameKindAndHoldsNothing(self):
    empty = [ring.Empty(s) for s in _SPECS]
    self.assertEqual([x.dtype for x in empty], [s.dtype for s in _SPECS])
    self.assertEqual([x.shape for x in empty], [[0, 3], [0], []])


if __name__ == '__main__':
  tf.test.main()
