"""Throughput over K and M, beside the figures of the GPipe paper's Table 2.

  python -m tools.benchmarks.table_2 --output_dir=/tmp/table_2

Three tables. `models` are the paper's own two: what each of their cells takes
is measured on a core of this machine, and the pipelines of 2, 4 and 8 devices
are simulated. `workers` checks the simulation: a small stack is measured on
worker processes, as many as there are cores, and simulated. `scale` simulates
a longer stack on up to 128 devices.

Everything is computed again but in the last partition, as in the paper, with
the schedule of the paper. Links take no time where nothing is said.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command, report, stack_flags, stack_sizes
from tools.benchmarks.paper import choices, output, published
from tools.benchmarks.table_2 import picture

SECTIONS = ('models', 'workers', 'scale')

_SECTIONS = flags.DEFINE_list(
  'sections', list(SECTIONS), 'Which tables: of models, workers, scale.'
)
_MODELS = flags.DEFINE_list(
  'models',
  list(published.THROUGHPUT),
  'Of "models": which of the two, by the names of the paper.',
)
_ROUNDS = flags.DEFINE_integer(
  'rounds', 5, 'Of "workers": measured steps of each pipeline.', lower_bound=1
)
_SCALE_LAYERS = flags.DEFINE_integer(
  'scale_layers', 256, 'Of "scale": blocks of the stack.', lower_bound=1
)
_SCALE_DEVICES = flags.DEFINE_list(
  'scale_devices', ['2', '4', '8', '16', '32', '64', '128'], 'Of "scale": K.'
)

_RELATIVE = (
  report.Column('num_devices', 'K'),
  report.Column('num_micro_batches', 'M'),
  report.Column('relative', 'throughput', report.Ratio),
  report.Column('paper', 'paper', report.Ratio),
  report.Column('bubble', 'bubble', report.Percent),
)
_WORKERS = (
  report.Column('num_devices', 'K'),
  report.Column('num_micro_batches', 'M'),
  report.Column('measured_seconds', 's/step', report.Seconds),
  report.Column('seconds', 'simulated', report.Seconds),
  report.Column('error', 'error', lambda x: f'{x:+.1%}'),
  report.Column('measured_relative', 'throughput', report.Ratio),
  report.Column('relative', 'simulated', report.Ratio),
)


def _Sections(sizes: stack_sizes.Sizes) -> list[output.Section]:
  """Measures and simulates what the flags ask for."""
  # Imports TensorFlow, which --help and bad flags do without.
  from tools.benchmarks.table_2 import runs

  devices = stack_flags.Integers('scale_devices', _SCALE_DEVICES.value)
  found: dict[str, Any] = {}
  # Cells first: after that, this process becomes the client of workers.
  if 'models' in _SECTIONS.value:
    for name in _MODELS.value:
      found[name] = runs.OfPaperModel(name)
  if 'scale' in _SECTIONS.value:
    found['scale'] = runs.Scale(sizes, _SCALE_LAYERS.value, devices)
  if 'workers' in _SECTIONS.value:
    found['workers'] = runs.OnWorkers(sizes, _ROUNDS.value)
  sections = [
    output.Section(
      f'models: {name}',
      f'{name}: simulated from cells measured on a core, throughput over that '
      'of K=2, M=1.',
      _RELATIVE,
      found[name],
    )
    for name in _MODELS.value
    if name in found
  ]
  if 'workers' in found:
    sections.append(
      output.Section(
        'workers',
        f'A stack of {sizes.layers} blocks on worker processes: measured and '
        'simulated.',
        _WORKERS,
        found['workers'],
      )
    )
  if 'scale' in found:
    sections.append(
      output.Section(
        'scale',
        f'A stack of {_SCALE_LAYERS.value} blocks: simulated from cells '
        'measured on a core, throughput over that of the first row.',
        _RELATIVE,
        found['scale'],
      )
    )
  return sections


def _CheckFlags() -> None:
  choices.Check(_SECTIONS, SECTIONS)
  choices.Check(_MODELS, published.THROUGHPUT)


def Main() -> int:
  """The tool; returns the exit status."""
  _CheckFlags()
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    stack_flags.Integers('scale_devices', _SCALE_DEVICES.value)
  quiet_import.ImportTensorFlow(quiet=True)
  with user_error.Expected(ValueError):
    sections = _Sections(sizes)
  output.Write('table_2', sections, picture.Draw, sizes=sizes.ToJson())
  return 0


if __name__ == '__main__':
  command.Run(Main)
