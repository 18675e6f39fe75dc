"""Trains planned pipelines on workers, and measures memory and time.

The model is the Transformer stack of all benchmarks, with a learner: Adam keeps
two more arrays for each weight.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import base_task, cluster, hyperparams
from lingvo_gpipe.train import optimizers
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import stack_sizes, transformer_stack
from tools.plan import candidates as candidates_lib
from tools.plan import evaluation, model_costs


class Measured(NamedTuple):
  """What a pipeline took.

  Attributes:
    memory: the most resident bytes of each worker, all of it.
    seconds: of each step after the first.
  """

  memory: list[int]
  seconds: list[float]

  @property
  def median(self) -> float:
    return statistics.median(self.seconds)


class Row(NamedTuple):
  """A prediction beside what came of it.

  Attributes:
    planned: the prediction.
    measured: the run.
  """

  planned: evaluation.Planned
  measured: Measured

  @property
  def memory_error(self) -> float:
    """Of the fullest device: predicted / measured - 1."""
    return max(self.planned.memory) / max(self.measured.memory) - 1

  @property
  def seconds_error(self) -> float:
    """Of a step: predicted / measured - 1."""
    return self.planned.seconds / self.measured.median - 1


def TaskParams(sizes: stack_sizes.Sizes) -> hyperparams.InstantiableParams:
  """The stack and its learner, in one partition."""
  p = base_task.BaseTask.Params().Set(name='stack')
  p.net.cells = transformer_stack.Cells(sizes)
  p.train.learner.Set(optimizer=optimizers.Adam.Params(), learning_rate=1e-4)
  return p


def Costs(sizes: stack_sizes.Sizes) -> model_costs.NetCosts:
  """What the planner has to know of it."""
  task = TaskParams(sizes).Instantiate()
  return model_costs.NetCosts(
    task.net,
    transformer_stack.BatchSpec(sizes),
    state_specs=task.StateSpecs(),
  )


def Candidate(
  sizes: stack_sizes.Sizes,
  num_devices: int,
  num_micro_batches: int,
  schedule: str,
  policy: str,
) -> candidates_lib.Candidate:
  """The candidate that is to be checked.

  Args:
    sizes: of the stack.
    num_devices: K.
    num_micro_batches: M.
    schedule: one with a partition on each device.
    policy: of re-materialization.

  Returns:
    The candidate.

  Raises:
    ValueError: where the stack is too small for it.
  """
  found = candidates_lib.Candidates(
    num_devices,
    sizes.layers + 1,
    sizes.batch,
    candidates_lib.Choices(
      [1], [num_devices], [num_micro_batches], [schedule], [policy]
    ),
  )
  return found[0]


def Run(
  planned: evaluation.Planned, sizes: stack_sizes.Sizes, num_steps: int
) -> Measured:
  """Trains as planned, on new workers.

  Args:
    planned: the plan, of one replica.
    sizes: of the stack.
    num_steps: measured; one more comes before them.

  Returns:
    What was measured.
  """
  c = planned.candidate
  with local_workers.LocalWorkers(c.num_devices) as workers:
    devices = cluster.Connect(workers.addresses).devices
    workers.ResetPeakMemory()
    seconds = _Train(planned, sizes, devices, num_steps)
    memory = [usage.peak for usage in workers.MemoryUsage()]
  return Measured(memory, seconds)


def _Train(
  planned: evaluation.Planned,
  sizes: stack_sizes.Sizes,
  devices: Sequence[str],
  num_steps: int,
) -> list[float]:
  c = planned.candidate
  p = TaskParams(sizes)
  p.net.Set(
    num_partitions=c.num_partitions,
    splits=[end - start for start, end in planned.ranges],
    num_micro_batches=c.num_micro_batches,
    schedule=c.schedule,
    rematerialize=list(planned.policies),
  )
  task = p.Instantiate()
  task.Plan(transformer_stack.BatchSpec(sizes), devices)
  task.InstantiateVariables()
  step = tf.function(cluster.ReturnToClient(task.TrainStep), autograph=False)
  batch: Any = transformer_stack.Batch(sizes)
  seconds = []
  for i in range(num_steps + 1):
    start = time.perf_counter()
    float(step(batch, tf.constant(i, tf.int64)).loss)
    seconds.append(time.perf_counter() - start)
  return seconds[1:]
