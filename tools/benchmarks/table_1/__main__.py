"""The largest models that fit, beside the figures of the GPipe paper's Table 1.

  python -m tools.benchmarks.table_1 --output_dir=/tmp/table_1

`workers` finds by real steps how many blocks a stack can have where worker
processes may take no more than --worker_memory: without pipeline (Naive-1), and
as a pipeline of 1, 2, 4 and 8 workers. `planner` finds the largest of the
paper's own models for its devices by the arithmetic with which models are
planned; there is nothing to be trained.

The paper counts 12 bytes for each parameter, the weight and two slots of
RMSProp. Here gradients take memory, too: their sums over micro-batches and
those of one micro-batch, 8 bytes more.
"""

from __future__ import annotations

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from lingvo_gpipe.workers import process_memory
from tools.benchmarks import command, report, stack_flags, stack_sizes
from tools.benchmarks.paper import choices, output, published
from tools.benchmarks.table_1 import picture

SECTIONS = ('planner', 'workers')

_SECTIONS = flags.DEFINE_list(
  'sections', list(SECTIONS), 'Which tables: of planner, workers.'
)
_WORKER_MEMORY = flags.DEFINE_string(
  'worker_memory',
  '1.5G',
  'Of "workers": resident memory that each worker may have; without work it '
  'has about 0.4G.',
)
_DEVICES = flags.DEFINE_list(
  'devices', ['1', '2', '4', '8'], 'Of "workers": K of the pipelines.'
)
_MICRO_BATCHES = flags.DEFINE_integer(
  'micro_batches', 16, 'Of "workers": M; divides the mini-batch.', lower_bound=1
)
_TIMEOUT = flags.DEFINE_float(
  'timeout', 1800.0, 'Of "workers": seconds of one trial.', lower_bound=1.0
)
_SCHEDULE = flags.DEFINE_enum(
  'schedule', 'gpipe', ['gpipe', '1f1b'], 'Of all pipelines.'
)
_COLUMNS = flags.DEFINE_list(
  'columns',
  [],
  'Of "planner": only these columns of the paper, such as Pipeline-8. Empty: '
  'all.',
)
_MODELS = flags.DEFINE_list(
  'models', ['transformer', 'amoebanet'], 'Of "planner": which of the two.'
)
flags.FLAGS.set_default('preset', 'wide_model')

_PLANNED = (
  report.Column('model', 'model'),
  report.Column('setting', 'setting'),
  report.Column('size', 'largest'),
  report.Column('params', 'parameters', report.Count),
  report.Column('memory', 'fullest device, MiB', report.Mebibytes),
  report.Column('paper_size', 'paper'),
  report.Column('paper_params', 'parameters', report.Count),
)
_WORKERS = (
  report.Column('setting', 'setting'),
  report.Column('layers', 'blocks'),
  report.Column('params', 'parameters', report.Count),
  report.Column('ratio', 'ratio', report.Ratio),
  report.Column('paper_ratio', "paper's Transformer", report.Ratio),
)


def _Planner() -> list[output.Section]:
  from tools.benchmarks.table_1 import planned

  sections = []
  for name, sizes, find, memory in (
    (
      'transformer',
      published.TRANSFORMER_SIZES,
      planned.Transformer,
      planned.TRANSFORMER_MEMORY,
    ),
    (
      'amoebanet',
      published.AMOEBANET_SIZES,
      planned.AmoebaNet,
      planned.AMOEBANET_MEMORY,
    ),
  ):
    if name not in _MODELS.value:
      continue
    rows = [
      find(size, memory, _SCHEDULE.value)
      for size in sizes
      if not _COLUMNS.value or size.setting in _COLUMNS.value
    ]
    sections.append(
      output.Section(
        f'planner: {name}',
        f'The largest that fits {process_memory.FormatSize(memory)} a device, '
        f'by arithmetic ({_SCHEDULE.value}, cells computed again).',
        _PLANNED,
        rows,
      )
    )
  return sections


def _Workers(
  sizes: stack_sizes.Sizes, devices: list[int], memory: int
) -> output.Section:
  from tools.benchmarks.table_1 import limited

  return output.Section(
    'workers',
    'The largest stack that trains a step on workers of '
    f'{process_memory.FormatSize(memory)} each, found by trying.',
    _WORKERS,
    limited.Search(
      sizes,
      devices,
      _MICRO_BATCHES.value,
      _SCHEDULE.value,
      memory=memory,
      timeout=_TIMEOUT.value,
    ),
  )


def _CheckFlags() -> None:
  choices.Check(_SECTIONS, SECTIONS)
  choices.Check(_MODELS, ('transformer', 'amoebanet'))
  choices.Check(
    _COLUMNS,
    dict.fromkeys(
      size.setting
      for size in (*published.TRANSFORMER_SIZES, *published.AMOEBANET_SIZES)
    ),
    may_be_empty=True,
  )


def Main() -> int:
  """The tool; returns the exit status."""
  _CheckFlags()
  with user_error.Expected(ValueError):
    sizes = stack_flags.Sizes()
    devices = stack_flags.Integers('devices', _DEVICES.value)
    memory = process_memory.ParseSize(_WORKER_MEMORY.value)
  if sizes.batch % _MICRO_BATCHES.value:
    raise user_error.UserError(
      f'--micro_batches={_MICRO_BATCHES.value} does not divide the mini-batch '
      f'of {sizes.batch} (--batch)'
    )
  quiet_import.ImportTensorFlow(quiet=True)
  sections = []
  if 'planner' in _SECTIONS.value:
    sections += _Planner()
  if 'workers' in _SECTIONS.value:
    sections.append(_Workers(sizes, devices, memory))
  output.Write('table_1', sections, picture.Draw, sizes=sizes.ToJson())
  return 0


if __name__ == '__main__':
  command.Run(Main)
