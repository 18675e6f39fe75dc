"""Steps on worker processes, divided into their parts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import cluster
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import harness, pipeline, report, stack_sizes
from tools.benchmarks.overhead import breakdown


def Measure(
  configs: Sequence[pipeline.Config],
  sizes: stack_sizes.Sizes,
  *,
  rounds: int,
  learning_rate: float,
) -> list[dict[str, Any]]:
  """Measures pipelines in turn, and their updates of the weights.

  Args:
    configs: the pipelines.
    sizes: of the stack.
    rounds: measured steps of each.
    learning_rate: of SGD.

  Returns:
    Rows: num_devices, num_micro_batches, order, policy, seconds, and the parts.
  """
  with local_workers.LocalWorkers(
    max(config.num_devices for config in configs)
  ) as workers:
    devices = cluster.Connect(workers.addresses).devices
    calls: dict[Any, Callable[[], Any]] = {}
    built = {}
    for config in configs:
      report.Progress(f'building {config.name}')
      built[config] = pipeline.Pipeline(
        config, sizes, devices, learning_rate=learning_rate
      )
      calls[config, 'step'] = built[config].Step
      calls[config, 'update'] = _Update(built[config])
    samples = harness.Alternate(calls, rounds=rounds, progress=report.Progress)
    rows = [
      _Row(built[config], samples[config, 'step'], samples[config, 'update'])
      for config in configs
    ]
    built.clear()
    calls.clear()
    pipeline.FreeUnused()
  return rows


def _Update(built: pipeline.Pipeline) -> Callable[[], None]:
  """A call that updates all weights by gradients of zero, and waits."""
  variables = tf.nest.flatten(built.net.vars)

  @cluster.ReturnToClient
  def _Apply():
    done = []
    for variable in variables:
      with tf.device(variable.device):
        apply = tf.raw_ops.ResourceApplyGradientDescent(
          var=variable.handle, alpha=0.0, delta=tf.zeros_like(variable)
        )
        done.append(apply)
    with tf.control_dependencies(done):
      return tf.constant(0.0)

  function = tf.function(_Apply, autograph=False)
  return lambda: float(function())


def _Row(
  built: pipeline.Pipeline,
  steps: Sequence[harness.Sample],
  updates: Sequence[harness.Sample],
) -> dict[str, Any]:
  config = built.config
  update = statistics.median(s.seconds for s in updates)
  shares = [
    breakdown.Shares(
      timeline_lib.FromTimes(
        step.result.times,
        devices=built.plan.devices,
        schedule=config.schedule,
        policies=config.policies,
      ),
      step.seconds,
      update,
    )
    for step in steps
  ]
  return {
    'num_devices': config.num_devices,
    'num_micro_batches': config.num_micro_batches,
    'order': config.order,
    'policy': config.policy,
    'seconds': statistics.median(s.seconds for s in steps),
    **breakdown.Median(shares),
  }
