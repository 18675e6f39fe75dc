"""A pipeline of the Transformer stack, ready to be measured."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from lingvo_gpipe import cluster
from lingvo_gpipe.gpipe import gpipe
from lingvo_gpipe.gpipe.schedules import schedule, schedule_table
from tools.benchmarks import stack_sizes, transformer_stack, unrolled

CUTS = ('plan', 'equal')


@dataclasses.dataclass(frozen=True)
class Config:
  """Which pipeline.

  Attributes:
    num_devices: K, workers.
    num_micro_batches: M.
    schedule: name of the schedule.
    num_chunks: V, partitions on each device; 1 except for 'interleaved'.
    policy: what is recomputed: 'none', 'cell' or 'partition', or one of these
      for each partition, joined by '+'.
    jit_compile: whether XLA compiles the stages.
    cut: 'plan' cuts by cost, 'equal' into equally many blocks.
    unrolled: the same stage functions of one partition, called M times in the
      graph, instead of the loop.
  """

  num_devices: int
  num_micro_batches: int
  schedule: str = '1f1b'
  num_chunks: int = 1
  policy: str = 'none'
  jit_compile: bool = False
  cut: str = 'plan'
  unrolled: bool = False

  @property
  def name(self) -> str:
    """Short, for progress and errors."""
    jit = ' jit' if self.jit_compile else ''
    return (
      f'K={self.num_devices} M={self.num_micro_batches} {self.order} '
      f'{self.policy}{jit}'
    )

  @property
  def order(self) -> str:
    """The schedule as a table shows it."""
    if self.unrolled:
      return 'unrolled'
    return self.schedule + (f' x{self.num_chunks}' * (self.num_chunks > 1))

  @property
  def num_partitions(self) -> int:
    """On all devices."""
    return self.num_devices * self.num_chunks

  def MakeSchedule(self) -> schedule_table.Schedule:
    """The table of the schedule."""
    return schedule.MakeSchedule(
      self.schedule,
      self.num_partitions,
      self.num_micro_batches,
      self.num_devices,
    )

  @property
  def policies(self) -> list[str]:
    """The policy of each partition."""
    parts = self.policy.split('+')
    return parts if len(parts) > 1 else parts * self.num_partitions


class FirstStep(NamedTuple):
  """Seconds until the first step is done.

  Attributes:
    plan: tracing the cells for their cost, and cutting them.
    variables: creating them on the workers.
    trace: of the whole step.
    first_run: of the first step, TensorFlow's preparations included.
  """

  plan: float
  variables: float
  trace: float
  first_run: float


class StepResult(NamedTuple):
  """What a step returns.

  Attributes:
    loss: before the step's update.
    times: for each partition float64 [num_micro_batches, 6], see
      loop_data.LoopResult; empty where there is no loop.
  """

  loss: float
  times: list[np.ndarray]


class Pipeline:
  """The stack, its variables on devices, and a step of SGD.

  Attributes:
    config: the Config.
    first_step: how long what lies behind took.
    num_nodes: of the step's graph, its functions included.
    net: the GPipe layer.
    plan: its PipelinePlan.
  """

  def __init__(
    self,
    config: Config,
    sizes: stack_sizes.Sizes,
    devices: Sequence[str],
    *,
    learning_rate: float,
    weights: Mapping[str, np.ndarray] | None = None,
  ):
    """Builds everything and runs one step.

    Args:
      config: which pipeline.
      sizes: of the stack.
      devices: of workers, as many as the config needs or more.
      learning_rate: of SGD.
      weights: of transformer_stack.WeightArrays; None: as the cells choose.
    """
    self.config = config
    start = time.perf_counter()
    net = gpipe.GPipe.Params().Set(
      name='stack',
      cells=transformer_stack.Cells(sizes),
      num_micro_batches=config.num_micro_batches,
      schedule=config.schedule,
      num_chunks=config.num_chunks,
      rematerialize=(
        config.policy.split('+') if '+' in config.policy else config.policy
      ),
      jit_compile=config.jit_compile,
      **_Cut(config, sizes),
    )
    self.net = net.Instantiate()
    self.plan = self.net.Plan(
      transformer_stack.BatchSpec(sizes),
      devices=list(devices[: config.num_devices]),
    )
    planned = time.perf_counter()
    self.net.InstantiateVariables()
    if weights is not None:
      transformer_stack.AssignWeights(self.net.vars.cells, weights)
    created = time.perf_counter()
    self._steps_done = 0
    self._function = self._MakeFunction(
      transformer_stack.Batch(sizes), learning_rate
    )
    concrete = self._function.get_concrete_function(tf.TensorSpec([], tf.int64))
    self.num_nodes = _CountNodes(concrete.graph.as_graph_def())
    traced = time.perf_counter()
    self.first_result = self.Step()
    self.first_step = FirstStep(
      plan=planned - start,
      variables=created - planned,
      trace=traced - created,
      first_run=time.perf_counter() - traced,
    )

  @property
  def blocks(self) -> list[int]:
    """Number of blocks in each partition, the loss left out."""
    counts = [end - start for start, end in self.plan.partitions]
    return [*counts[:-1], counts[-1] - 1]

  def _MakeFunction(self, batch, learning_rate):
    net, config = self.net, self.config

    @cluster.ReturnToClient
    def _Step(global_step):
      if config.unrolled:
        loss, gradients = unrolled.ComputeGradients(
          net, batch, config.num_micro_batches, config.policy, global_step
        )
        times = []
      else:
        result = net.ComputeGradients(batch, global_step)
        loss, times = result.loss, result.times
        gradients = tf.nest.flatten(result.grads)
      variables = tf.nest.flatten(net.vars)
      for variable, gradient in zip(variables, gradients, strict=True):
        with tf.device(variable.device):
          tf.raw_ops.ResourceApplyGradientDescent(
            var=variable.handle, alpha=learning_rate, delta=gradient
          )
      return loss, times

    return tf.function(_Step, autograph=False)

  def TimedStep(self) -> tuple[StepResult, float]:
    """A step, and its seconds."""
    start = time.perf_counter()
    result = self.Step()
    return result, time.perf_counter() - start

  def Step(self) -> StepResult:
    """Runs one step, and waits for it."""
    loss, times = self._function(tf.constant(self._steps_done, tf.int64))
    self._steps_done += 1
    return StepResult(float(loss), [t.numpy() for t in times])


def FreeUnused() -> None:
  """Frees what workers hold for pipelines that are not used any more.

  TensorFlow complains if the workers end first.
  """
  gc.collect()  # tf.functions are in cycles.


def EqualCut(layers: int, num_partitions: int) -> list[int]:
  """Numbers of blocks that differ by one at the most."""
  ends = [layers * k // num_partitions for k in range(num_partitions + 1)]
  return [b - a for a, b in itertools.pairwise(ends)]


def _Cut(config: Config, sizes: stack_sizes.Sizes) -> dict[str, Any]:
  """The params of GPipe that say how the cells are cut."""
  if config.cut == 'plan':
    return {'num_partitions': config.num_devices}
  splits = EqualCut(sizes.layers, config.num_partitions)
  splits[-1] += 1  # The loss.
  return {'splits': splits}


def _CountNodes(graph) -> int:
  return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)
