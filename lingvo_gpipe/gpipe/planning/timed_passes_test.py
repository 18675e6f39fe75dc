"""Tests for timed_passes."""

from __future__ import annotations

import time

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import micro_batch, segment, test_cells
from lingvo_gpipe.gpipe import stage as stage_lib
from lingvo_gpipe.gpipe.planning import timed_passes

NestedMap = nested_map.NestedMap


def _Sleep(x: tf.Tensor, seconds: float) -> tf.Tensor:
  """x, later; TensorFlow takes it for a function without side effects."""

  def _Run(value):
    time.sleep(seconds)
    return value

  y = tf.numpy_function(_Run, [x], x.dtype, stateful=False)
  return tf.ensure_shape(y, x.shape)


class _Sleepy(test_cells.Linear):
  """Takes 4 ms forwards and 10 ms backwards."""

  def FProp(self, theta, inputs):
    @tf.custom_gradient
    def _Slowly(x):
      return _Sleep(x, 0.004), lambda dy: _Sleep(dy, 0.010)

    return _Slowly(super().FProp(theta, inputs))


def _Segment(cell, *, is_first=False, is_last=False, batch=None):
  layer = cell.Instantiate()
  stage = stage_lib.Stage(0, 0, (layer,), '/device:CPU:0')
  spec = tf.TensorSpec([6, 4], tf.float32)
  batch = batch or NestedMap()
  return segment.Segment(
    stage,
    stage_lib.Carried(spec, {}),
    batch,
    is_first=is_first,
    is_last=is_last,
  )


class TimeTest(tf.test.TestCase):
  def testEveryRunIsMade(self):
    """None is left out as unused, or made once for all."""
    cell = _Sleepy.Params().Set(name='cell', input_dim=4, output_dim=4)
    for is_first in (False, True):
      traced = _Segment(cell, is_first=is_first)
      seconds = timed_passes.Time(traced, {}, NestedMap())
      self.assertBetween(seconds.forward, 0.004, 0.04)
      # A difference of medians.
      self.assertBetween(seconds.backward, 0.008, 0.04)

  def testLossAtTheEnd(self):
    # Micro-batches of six examples.
    batch = micro_batch.MicroSpecs(
      micro_batch.Specs(test_cells.Batch(dtype=tf.float32)), 4
    )
    fields = NestedMap(labels=batch.labels, weights=batch.weights)
    traced = _Segment(test_cells.Cells()[-1], is_last=True, batch=fields)
    seconds = timed_passes.Time(traced, {}, batch)
    self.assertGreater(seconds.forward, 0.0)
    self.assertLess(seconds.forward + seconds.backward, 0.05)


if __name__ == '__main__':
  tf.test.main()
