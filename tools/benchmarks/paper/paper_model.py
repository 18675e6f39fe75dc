"""One of the paper's models, with what its cells take on this processor."""

from __future__ import annotations

from collections.abc import Sequence

from lingvo_gpipe.gpipe.planning import partition
from lingvo_gpipe.jobs import flags as job_flags
from tools.benchmarks import report
from tools.plan import model_costs, registered_model


def Measure(
  name: str, registered: str, sizes: Sequence[int]
) -> tuple[model_costs.NetCosts, dict[int, list[partition.CellTime]]]:
  """Counts the model's cells and measures them; takes no data.

  Args:
    name: of the paper, for progress.
    registered: our name of it.
    sizes: examples of micro-batches to measure with.

  Returns:
    (costs, {size: times of all cells}).
  """
  report.Progress(f'{name}: counting and measuring the cells of {registered}')
  model = registered_model.Load(
    job_flags.Options(model=registered, imports=('params',))
  )
  measured = {}
  for size in sizes:
    report.Progress(f'{name}: micro-batches of {size}')
    measured[size] = model.Measure(size)
  return model, measured
