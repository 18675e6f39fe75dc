"""The batches of a dataset that is evaluated or decoded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from lingvo_gpipe import base_input, cluster, nested_map

NestedMap = nested_map.NestedMap


def Read(input_generator: base_input.BaseInput) -> Iterator[NestedMap]:
  """One pass over the data.

  Args:
    input_generator: of the dataset.

  Yields:
    Batches, on this process's host.

  Raises:
    UserError: for data that cannot be read.
  """
  with tf.device(cluster.INPUT_DEVICE), base_input.UserErrors():
    batches = iter(input_generator.Dataset(0).prefetch(2))
  while True:
    with base_input.UserErrors():
      batch = next(batches, None)
    if batch is None:
      return
    yield NestedMap(batch)


def IsExample(batch: NestedMap, weights_field: str) -> np.ndarray:
  """Which rows have any weight; the others only fill up the batch.

  Args:
    batch: of Read.
    weights_field: name of its field of weights.

  Returns:
    bools [batch].
  """
  weights = batch[weights_field].numpy()
  return weights.reshape(len(weights), -1).any(axis=1)
