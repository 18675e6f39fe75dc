"""Data parallelism: R replicas of the pipeline, each with its own rows.

  replica 0   partition 0   partition 1       rows 0 .. N/2 - 1
                   |             |            sums of gradients, statistics,
  replica 1   partition 0   partition 1       losses; rows N/2 .. N - 1

Every replica runs its own micro-batch loop. Once all are through, what they
summed is summed over the replicas of each partition: results are those of one
pipeline on the whole mini-batch.

A variable exists once, on the device of the replica that owns it
(replica_owners.py). Before the loops its value goes from there to the other
replicas; after them their gradients come to it. Each value crosses as often as
in an all-reduce by rings, and no device, nor the client, sees more than its
share. There are no copies of variables that could be out of date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import nested_map
from lingvo_gpipe.gpipe import replica_owners
from lingvo_gpipe.gpipe import stage as stage_lib

NestedMap = nested_map.NestedMap


def VariableDevices(
  stage: stage_lib.Stage, devices: Sequence[str]
) -> Mapping[str, str]:
  """Where the variables of a partition are.

  Args:
    stage: the partition.
    devices: of the partition in each replica.

  Returns:
    {variable path: device string}.
  """
  specs = tf.nest.flatten([cell.VariableSpecs() for cell in stage.cells])
  owners = replica_owners.Owners(specs, len(devices))
  return {path: devices[replica] for path, replica in owners.items()}


def SumReports(
  reports: Sequence[Sequence[NestedMap]], stages: Sequence[stage_lib.Stage]
) -> list[NestedMap]:
  """What stages report, over all replicas.

  Args:
    reports: for each replica those of its stages, see loop_data.LoopResult.
    stages: of the first replica.

  Returns:
    For each stage the sums, in the order of replicas, on its device.
  """
  sums = []
  for stage, of_stage in zip(stages, zip(*reports, strict=True), strict=True):
    with tf.device(stage.device):
      sums.append(tf.nest.map_structure(_Sum, *of_stage))
  return sums


def SumGradients(trees: Sequence[Any], variables: Any, scale: tf.Tensor) -> Any:
  """Gradients over all replicas, scaled.

  Args:
    trees: of each replica, gradients or None, shaped like `variables`.
    variables: tree of tf.Variable.
    scale: scalar to multiply them by.

  Returns:
    The tree of sums in the order of replicas, each on its variable's device.
  """

  def _Scaled(variable, *gradients):
    if gradients[0] is None:
      return None
    with tf.device(variable.device):
      total = _Sum(*gradients)
      return total * tf.cast(scale, total.dtype)

  return tf.nest.map_structure(_Scaled, variables, *trees)


def _Sum(first: tf.Tensor, *others: tf.Tensor) -> tf.Tensor:
  for other in others:
    first += other
  return first
