"""Measures pipelines whose workers, and client, are on emulated hosts.

The client is a program of its own, this module, which runs on host 0: reads a
Job as JSON from standard input and writes seconds to standard output.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from typing import Any

from lingvo_gpipe import child_process, cluster, user_error
from tools.benchmarks import (
  emulated_hosts,
  fault_processes,
  stack_sizes,
)
from tools.benchmarks.paper import measured_steps, simulation

# A worker that does not answer for so long is lost; slow links are not.
_LOST_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Job:
  """What to measure.

  Attributes:
    pipelines: simulation.Pipeline each, as dicts.
    sizes: of the stack, as a dict.
    rounds: measured steps of each.
    addresses: of the workers; filled in by MeasureSteps.
  """

  pipelines: list[dict[str, Any]]
  sizes: dict[str, int]
  rounds: int
  addresses: tuple[str, ...] = ()


def MeasureSteps(hosts: emulated_hosts.EmulatedHosts, job: Job) -> list[float]:
  """Measures on workers on hosts 1, 2, ...; the client is on host 0.

  Args:
    hosts: one more than the largest K.
    job: without addresses.

  Returns:
    Median seconds of a step of each pipeline.

  Raises:
    UserError: where the client fails.
  """
  num_workers = max(p['num_devices'] for p in job.pipelines)
  with (
    tempfile.TemporaryDirectory() as directory,
    fault_processes.Processes(
      num_workers, directory, hosts, _LOST_SECONDS
    ) as processes,
  ):
    for k in range(num_workers):
      processes.Pid(k)  # Waits until it listens.
    job = dataclasses.replace(job, addresses=tuple(processes.addresses))
    done = subprocess.run(
      hosts.Command(0, [sys.executable, '-P', '-m', __name__]),
      input=json.dumps(dataclasses.asdict(job)),
      env=child_process.Environment(),
      stdout=subprocess.PIPE,
      text=True,
      check=False,
    )
  if done.returncode:
    raise user_error.UserError(
      f'the client on host 0 ended with status {done.returncode}; what it says '
      'is above'
    )
  return json.loads(done.stdout.splitlines()[-1])


def Measure(job: Job) -> list[float]:
  """Measures as the client of the workers.

  Args:
    job: with addresses.

  Returns:
    Median seconds of a step of each pipeline, all measured in turn.
  """
  devices = cluster.Connect(job.addresses).devices
  return measured_steps.MedianSeconds(
    [simulation.Pipeline(**fields) for fields in job.pipelines],
    stack_sizes.Sizes(**job.sizes),
    devices,
    job.rounds,
  )


if __name__ == '__main__':
  print(json.dumps(Measure(Job(**json.load(sys.stdin)))))
