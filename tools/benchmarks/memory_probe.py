"""Trains a step of one configuration in new workers, and measures their memory.

A program of its own, started by pipeline_memory: allocators don't give memory
back, so every configuration has processes that have done nothing before. Reads
a Job as JSON from standard input and writes an Outcome to standard output.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

from lingvo_gpipe import child_process, cluster
from lingvo_gpipe.workers import local_workers, process_memory
from tools.benchmarks import (
  memory_model,
  pipeline,
  stack_sizes,
  transformer_stack,
)

TRAINED = 'trained'
OUT_OF_MEMORY = 'out of memory'
FAILED = 'failed'


@dataclasses.dataclass(frozen=True)
class Job:
  """What to train.

  Attributes:
    config: the pipeline.
    sizes: of the stack.
    memory_limit: bytes of each worker; None for no limit.
    steps: how many.
  """

  config: pipeline.Config
  sizes: stack_sizes.Sizes
  memory_limit: int | None = None
  steps: int = 1


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What became of it.

  Attributes:
    status: TRAINED, OUT_OF_MEMORY or FAILED.
    detail: why, where it was not trained.
    idle: resident bytes of each worker before it got work.
    peak: the most resident bytes each had after that.
    arithmetic: memory_model.Memory of each partition, as dicts.
    blocks: number of blocks of each partition.
    seconds: of the last step.
    loss: of the last step.
  """

  status: str
  detail: str = ''
  idle: list[int] = dataclasses.field(default_factory=list)
  peak: list[int] = dataclasses.field(default_factory=list)
  arithmetic: list[dict[str, int]] = dataclasses.field(default_factory=list)
  blocks: list[int] = dataclasses.field(default_factory=list)
  seconds: float | None = None
  loss: float | None = None

  @property
  def grown(self) -> list[int]:
    """Peak bytes of each worker above what it had without work."""
    return [p - i for p, i in zip(self.peak, self.idle, strict=True)]


def Run(job: Job, *, timeout: float | None = None) -> Outcome:
  """Runs a job in a process of its own.

  Args:
    job: the Job.
    timeout: seconds, after which the outcome is FAILED.

  Returns:
    The Outcome; whatever happens to the process is part of it.
  """
  try:
    done = subprocess.run(
      [sys.executable, '-P', '-m', __name__],
      input=json.dumps(dataclasses.asdict(job)),
      env=child_process.Environment(),
      capture_output=True,
      text=True,
      timeout=timeout,
      check=False,
    )
  except subprocess.TimeoutExpired:
    return Outcome(FAILED, f'not done after {timeout:.0f} s')
  if done.returncode:
    lines = done.stderr.strip().splitlines() or ['no message']
    return Outcome(FAILED, f'status {done.returncode}: {lines[-1]}')
  return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def Train(job: Job) -> Outcome:
  """Does the job, in this process and workers of its own."""
  config = job.config
  try:
    with local_workers.LocalWorkers(
      config.num_devices, memory_limit=job.memory_limit
    ) as workers:
      _CheckLimit(workers, job.memory_limit)
      devices = cluster.Connect(workers.addresses).devices
      idle = [usage.current for usage in workers.MemoryUsage()]
      workers.ResetPeakMemory()
      built = pipeline.Pipeline(config, job.sizes, devices, learning_rate=0.01)
      result, seconds = built.first_result, built.first_step.first_run
      for _ in range(job.steps - 1):
        result, seconds = built.TimedStep()
      peak = [usage.peak for usage in workers.MemoryUsage()]
  except local_workers.WorkerLostError as e:
    # Of its limit, or of the machine's memory.
    status = OUT_OF_MEMORY if 'ran out of' in str(e) else FAILED
    return Outcome(status, str(e))
  estimate = memory_model.Estimate(
    memory_model.CountCells(
      built.net,
      transformer_stack.BatchSpec(job.sizes),
      config.num_micro_batches,
    ),
    built.plan.partitions,
    config.policies,
    config.MakeSchedule(),
  )
  return Outcome(
    TRAINED,
    idle=idle,
    peak=peak,
    arithmetic=[dataclasses.asdict(m) for m in estimate],
    blocks=built.blocks,
    seconds=seconds,
    loss=result.loss,
  )


def _CheckLimit(
  workers: local_workers.LocalWorkers, memory_limit: int | None
) -> None:
  """Raises WorkerLostError where workers need more without any work.

  They may end at any time then, and connecting to them would take for ever.
  """
  try:
    idle = max(usage.current for usage in workers.MemoryUsage())
  except ProcessLookupError:
    workers.Check(seconds=10.0)
    raise
  if memory_limit is not None and idle > memory_limit:
    raise local_workers.WorkerLostError(
      f'a worker ran out of {process_memory.FormatSize(memory_limit)} before '
      f'it got work: it has {process_memory.FormatSize(idle)} then'
    )


def _Parse(text: str) -> Job:
  fields = json.loads(text)
  return Job(
    **{
      **fields,
      'config': pipeline.Config(**fields['config']),
      'sizes': stack_sizes.Sizes(**fields['sizes']),
    }
  )


if __name__ == '__main__':
  print(json.dumps(dataclasses.asdict(Train(_Parse(sys.stdin.read())))))
