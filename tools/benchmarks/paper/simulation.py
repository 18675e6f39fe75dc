"""The throughput of pipelines that this machine has not the devices for.

What cells take is measured on a core; cutting them, and the micro-batch loop on
K devices, are what tools/plan predicts steps with: the same partitioner and the
same table of passes that training uses, played event by event.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lingvo_gpipe.gpipe.planning import partition
from tools.plan import candidates as candidates_lib
from tools.plan import device as device_lib
from tools.plan import evaluation

# Bytes a second; as good as no time for any message.
FAST_LINK = 1e18


@dataclasses.dataclass(frozen=True)
class Pipeline:
  """What is played.

  Attributes:
    num_devices: K.
    num_micro_batches: M.
    batch_size: examples of the mini-batch.
    schedule: one with a partition on each device.
    policy: of re-materialization.
  """

  num_devices: int
  num_micro_batches: int
  batch_size: int
  schedule: str = 'gpipe'
  policy: str = 'partition'

  @property
  def micro_batch_size(self) -> int:
    return self.batch_size // self.num_micro_batches


def Pipelines(
  devices: Iterable[int], micro_batches: Iterable[int], batch_size: int
) -> list[Pipeline]:
  """All combinations of K and M that split the mini-batch evenly."""
  return [
    Pipeline(k, m, batch_size)
    for m in micro_batches
    for k in devices
    if batch_size % m == 0
  ]


def Sizes(pipelines: Iterable[Pipeline]) -> set[int]:
  """Examples of the micro-batches of pipelines."""
  return {p.micro_batch_size for p in pipelines}


def Play(
  model: evaluation.Model,
  cell_times: Mapping[int, Sequence[partition.CellTime]],
  pipelines: Sequence[Pipeline],
  *,
  link_speed: float = FAST_LINK,
  link_latency: float = 0.0,
  memory_speed: float = float('inf'),
) -> list[dict[str, Any]]:
  """Plays a step of each pipeline.

  Args:
    model: whose step.
    cell_times: {examples: times of all cells}, for each size of micro-batches
      that a pipeline has; see fitted_times.
    pipelines: what to play.
    link_speed: bytes a second between devices.
    link_latency: seconds.
    memory_speed: bytes a second; says how long the update takes.

  Returns:
    Rows: num_devices, num_micro_batches, seconds, throughput (examples a
    second), bubble.
  """
  evaluator = evaluation.Evaluator(
    model,
    device_lib.Device(
      flops=None,
      link_speed=link_speed,
      link_latency=link_latency,
      memory_speed=memory_speed,
      cell_times=cell_times,
    ),
  )
  rows = []
  for p in pipelines:
    planned = evaluator.Evaluate(
      candidates_lib.Candidate(
        num_replicas=1,
        num_devices=p.num_devices,
        num_micro_batches=p.num_micro_batches,
        micro_batch_size=p.micro_batch_size,
        schedule=p.schedule,
        num_chunks=1,
        policy=p.policy if p.num_devices > 1 else 'none',
      )
    )
    rows.append(
      {
        'num_devices': p.num_devices,
        'num_micro_batches': p.num_micro_batches,
        'seconds': planned.seconds,
        'throughput': p.batch_size / planned.seconds,
        'bubble': planned.bubble,
      }
    )
  return rows


def AddRelative(
  rows: Sequence[dict[str, Any]],
  key: str,
  base: tuple[int, int],
  paper: Mapping[tuple[int, int], float],
  name: str = 'relative',
) -> None:
  """Adds how throughputs compare with that of one pipeline.

  Args:
    rows: of Play; get `name` and, where the paper has it, `paper`.
    key: of the throughput.
    base: (K, M) of the pipeline whose throughput is 1.
    paper: {(K, M): its figure}.
    name: of what is added.
  """

  def _Of(row: Mapping[str, Any]) -> tuple[int, int]:
    return row['num_devices'], row['num_micro_batches']

  one = next(row[key] for row in rows if _Of(row) == base)
  for row in rows:
    row[name] = row[key] / one
    row['paper'] = paper.get(_Of(row))
