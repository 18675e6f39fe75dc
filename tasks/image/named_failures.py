"""A map over a Dataset whose errors tell which element it was.

TensorFlow says what was wrong with an element, but not with which. To catch an
error around each call would cost more than decoding a small picture. So errors
are dropped; elements are numbered, and where a number is missing, its element
is read again and named. Nothing is paid for it as long as all is well.

Every 64th element is an extra one that cannot fail, so that missing numbers are
noticed even where everything fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_input

_PERIOD = 64


def Map(
  dataset: tf.data.Dataset,
  function: Callable[[Any], Any],
  message: Callable[[Any], tf.Tensor],
  *,
  num_parallel_calls: int,
) -> tf.data.Dataset:
  """Maps in order, several elements at a time.

  Args:
    dataset: of any elements, which must come the same each time.
    function: from an element to nested tensors of static shapes.
    message: from an element that fails to a string scalar for its owner; see
      base_input.Check.
    num_parallel_calls: elements at a time; tf.data.AUTOTUNE is possible.

  Returns:
    A Dataset of what `function` gives.
  """
  traced = tf.function(function, autograph=False).get_concrete_function(
    dataset.element_spec
  )
  extra = tf.nest.map_structure(_Zeros, dataset.element_spec)
  nothing = tf.nest.map_structure(_Zeros, traced.structured_outputs)
  real = tf.data.Dataset.from_tensors(True).repeat()
  extras = tf.data.Dataset.from_tensors((False, extra)).repeat()
  slots = tf.data.Dataset.choose_from_datasets(
    [tf.data.Dataset.zip(real, dataset), extras],
    tf.data.Dataset.range(tf.int64.max).map(
      lambda i: tf.cast(i % _PERIOD == _PERIOD - 1, tf.int64)
    ),
    stop_on_empty_dataset=True,
  )
  numbered = slots.concatenate(extras.take(1)).enumerate()

  def _Call(number, slot):
    is_real, element = slot
    outputs = tf.cond(is_real, lambda: traced(element), lambda: nothing)
    return number, is_real, outputs

  def _Message(number):
    lost = numbered.skip(number).take(1)
    return lost.map(lambda _, slot: message(slot[1])).get_single_element()

  def _Check(expected, found):
    number, is_real, outputs = found
    fine = base_input.Check(number == expected, lambda: _Message(expected))
    with tf.control_dependencies([fine]):
      return tf.identity(is_real), outputs

  mapped = numbered.map(
    _Plain(_Call), num_parallel_calls=num_parallel_calls, deterministic=True
  )
  checked = mapped.ignore_errors().enumerate().map(_Plain(_Check))
  return checked.filter(lambda is_real, _: is_real).map(
    lambda _, outputs: outputs
  )


def _Zeros(spec: Any) -> tf.Tensor:
  if spec.dtype == tf.string:
    return tf.fill(spec.shape, '')
  return tf.zeros(spec.shape, spec.dtype)


def _Plain(function: Callable[..., Any]) -> Callable[..., Any]:
  """As it is, without autograph."""
  return tf.autograph.experimental.do_not_convert(function)
