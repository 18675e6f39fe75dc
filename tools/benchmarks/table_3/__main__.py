"""Throughput over slow links, beside the figures of the GPipe paper's Table 3.

  python -m tools.benchmarks.table_3 --output_dir=/tmp/table_3  # as root

`workers` measures pipelines of one and of two worker processes, each on an
emulated host (a network namespace) whose link has the bandwidth asked for, and
simulates them beside that. `models` simulates the paper's own models on 2, 4
and 8 devices over the same links; what their cells take is measured on a core.

M is 32, and everything is computed again but in the last partition. The paper
has GPUs that reach each other through their host only. One core of a processor
computes some hundred times slower than such a GPU, so links of a hundredth of
its bandwidth, about 1 Gbit/s, are as slow beside it.
"""

from __future__ import annotations

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command, report, stack_flags, stack_sizes
from tools.benchmarks.paper import choices, output, published
from tools.benchmarks.table_3 import picture
from tools.plan import device as device_lib

SECTIONS = ('models', 'workers')

_SECTIONS = flags.DEFINE_list(
  'sections', list(SECTIONS), 'Which tables: of models, workers.'
)
_MODELS = flags.DEFINE_list(
  'models',
  list(published.SLOW_LINK_THROUGHPUT),
  'Of "models": which of the two, by the names of the paper.',
)
_BANDWIDTHS = flags.DEFINE_list(
  'bandwidths', ['1G', '200M', '50M'], 'Bits a second of a link.'
)
_MICRO_BATCHES = flags.DEFINE_integer(
  'micro_batches', 32, 'M; divides the mini-batch.', lower_bound=1
)
_ROUNDS = flags.DEFINE_integer(
  'rounds', 5, 'Of "workers": measured steps of each pipeline.', lower_bound=1
)

_LINK = report.Column('bandwidth', 'link, Mbit/s', lambda x: f'{x / 1e6:.0f}')
_RELATIVE = (
  _LINK,
  report.Column('num_devices', 'K'),
  report.Column('relative', 'throughput', report.Ratio),
  report.Column('paper', 'paper', report.Ratio),
  report.Column('bubble', 'idle', report.Percent),
)
_WORKERS = (
  _LINK,
  report.Column('num_devices', 'K'),
  report.Column('measured_seconds', 's/step', report.Seconds),
  report.Column('seconds', 'simulated', report.Seconds),
  report.Column('error', 'error', lambda x: f'{x:+.1%}'),
  report.Column('measured_speedup', 'speed-up', report.Ratio),
  report.Column('speedup', 'simulated', report.Ratio),
)


def _Bandwidths() -> list[float]:
  return [
    device_lib.ParseNumber(text, 'bandwidths') for text in _BANDWIDTHS.value
  ]


def _Sections(sizes: stack_sizes.Sizes) -> list[output.Section]:
  """Measures and simulates what the flags ask for."""
  # Imports TensorFlow, which --help and bad flags do without.
  from tools.benchmarks.table_3 import runs

  bandwidths, m = _Bandwidths(), _MICRO_BATCHES.value
  sections = []
  if 'models' in _SECTIONS.value:
    sections += [
      output.Section(
        f'models: {name}',
        f'{name}, M={m}: simulated from cells measured on a core, throughput '
        'over that of K=2 without any time for messages.',
        _RELATIVE,
        runs.OfPaperModel(name, bandwidths, m),
      )
      for name in _MODELS.value
    ]
  if 'workers' in _SECTIONS.value:
    sections.append(
      output.Section(
        'workers',
        f'A stack of {sizes.layers} blocks, M={m}, on emulated hosts: measured '
        'and simulated.',
        _WORKERS,
        runs.OnHosts(sizes, bandwidths, m, _ROUNDS.value),
      )
    )
  return sections


def _CheckFlags() -> None:
  choices.Check(_SECTIONS, SECTIONS)
  choices.Check(_MODELS, published.SLOW_LINK_THROUGHPUT)


def Main() -> int:
  """The tool; returns the exit status."""
  _CheckFlags()
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    _Bandwidths()
  if sizes.batch % _MICRO_BATCHES.value:
    raise user_error.UserError(
      f'--micro_batches={_MICRO_BATCHES.value} does not divide the mini-batch '
      f'of {sizes.batch} (--batch)'
    )
  quiet_import.ImportTensorFlow(quiet=True)
  with user_error.Expected(ValueError):
    sections = _Sections(sizes)
  output.Write('table_3', sections, picture.Draw, sizes=sizes.ToJson())
  return 0


if __name__ == '__main__':
  command.Run(Main)
