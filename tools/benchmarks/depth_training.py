"""Trains deep, narrow models with measures against divergence.

  python -m tools.benchmarks.depth_training \\
      --measures=none,init,logits,init+logits,norm+warmup+skip,all
  python -m tools.benchmarks.depth_training --architecture=encoder_decoder

Each row is a set of measures and a seed; `all` are all of them. The model, a
language model or one of translation, has pre-norm blocks and, like those of the
paper's Table 1, no norm behind the last one. With --wide_against_deep, L blocks
twice as wide stand against 2 L, with all measures and equally many parameters,
as the paper compares T(12, 16384, 32) with T(24, 8192, 16).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from absl import flags

from tools.benchmarks import (
  command,
  depth_training_models,
  depth_training_runs,
  report,
)

_ARCHITECTURE = flags.DEFINE_enum(
  'architecture',
  'decoder',
  ['decoder', 'encoder_decoder'],
  'A language model, or translation with L blocks in the encoder and L in the '
  'decoder.',
)
_MEASURES = flags.DEFINE_list(
  'measures',
  ['none', 'init', 'logits', 'init+logits', 'norm+warmup+skip', 'all'],
  'Sets of measures, each with "+" between: '
  + '; '.join(f'{k}: {v}' for k, v in depth_training_runs.MEASURES.items())
  + '. Or "none" or "all".',
)
_SEEDS = flags.DEFINE_integer('seeds', 2, 'Runs of each.', lower_bound=1)
_LAYERS = flags.DEFINE_integer(
  'layers',
  64,
  'L, blocks; of an encoder and of a decoder, each.',
  lower_bound=1,
)
_DIM = flags.DEFINE_integer(
  'dim', 16, 'Width; hidden layers are 4 times as wide.', lower_bound=2
)
_HEADS = flags.DEFINE_integer('heads', 2, 'Of attention.', lower_bound=1)
_STEPS = flags.DEFINE_integer('steps', 120, 'Of each run.', lower_bound=1)
_BATCH_SIZE = flags.DEFINE_integer(
  'batch_size', 8, 'Rows of a mini-batch.', lower_bound=1
)
_LENGTH = flags.DEFINE_integer(
  'sequence_length', 32, 'Bytes of a row, or subwords.', lower_bound=1
)
_OPTIMIZER = flags.DEFINE_enum(
  'optimizer', 'adafactor', list(depth_training_runs.OPTIMIZERS), 'Which one.'
)
_LEARNING_RATE = flags.DEFINE_float(
  'learning_rate',
  0.3,
  'Constant, or the peak of "warmup"; large on purpose. Adafactor takes it '
  'relative to the size of each variable.',
  lower_bound=0.0,
)
_LOGITS = flags.DEFINE_float(
  'logits_abs_max', 15.0, 'Of "logits".', lower_bound=0.0
)
_NORM = flags.DEFINE_float('gradient_norm', 1.0, 'Of "norm".', lower_bound=0.0)
_FINAL_NORM = flags.DEFINE_bool(
  'final_norm', False, 'A norm behind the last block.'
)
_WIDE_AGAINST_DEEP = flags.DEFINE_bool(
  'wide_against_deep',
  False,
  'Compares L blocks of twice the hidden width and heads with 2 L blocks.',
)
_DATA_DIR = flags.DEFINE_string(
  'data_dir',
  '',
  'The text: see token_files.py; of "encoder_decoder", what tools/mt/prepare '
  'wrote. Empty: the sources of Python; texts of Django.',
)
_VOCAB_SIZE = flags.DEFINE_integer(
  'vocab_size', 4000, 'Subwords of "encoder_decoder".', lower_bound=1
)
_OUTPUT = flags.DEFINE_string(
  'output', None, 'A JSON file for all that was measured.'
)


def _Loss(value: float) -> str:
  return f'{value:.3f}' if value < 1000 else f'{value:.1e}'


_COLUMNS = (
  report.Column('measures', 'measures'),
  report.Column('layers', 'L'),
  report.Column('hidden_dim', 'hidden'),
  report.Column('parameters', 'parameters', report.Count),
  report.Column('seed', 'seed'),
  report.Column('loss', 'loss', _Loss),
  report.Column('worst', 'worst loss', _Loss),
  report.Column('non_finite', 'non-finite'),
  report.Column('skipped', 'skipped'),
)


def _Architecture() -> depth_training_models.Architecture:
  """What the flags choose."""
  data = {'data_dir': _DATA_DIR.value} if _DATA_DIR.value else {}
  if _ARCHITECTURE.value == 'decoder':
    return depth_training_models.LanguageModel(**data)
  return depth_training_models.EncoderDecoder(
    **data, vocab_size=_VOCAB_SIZE.value
  )


def _Shapes() -> list[depth_training_models.Shape]:
  """What is compared: one shape, or the deep and the wide one."""
  base = depth_training_models.Shape(
    num_layers=_LAYERS.value,
    dim=_DIM.value,
    hidden_dim=4 * _DIM.value,
    num_heads=_HEADS.value,
    head_dim=max(1, _DIM.value // _HEADS.value),
  )
  if not _WIDE_AGAINST_DEEP.value:
    return [base]
  return [
    dataclasses.replace(base, num_layers=2 * base.num_layers),
    dataclasses.replace(
      base, hidden_dim=2 * base.hidden_dim, num_heads=2 * base.num_heads
    ),
  ]


def _Rows(options: depth_training_runs.Options) -> list[dict[str, Any]]:
  """Runs everything."""
  names = ['all'] if _WIDE_AGAINST_DEEP.value else _MEASURES.value
  wanted = {name: depth_training_runs.ParseMeasures(name) for name in names}
  runner = depth_training_runs.Runner(options)
  rows = []
  for shape in _Shapes():
    for name, measures in wanted.items():
      for seed in range(1, _SEEDS.value + 1):
        report.Progress(f'{shape.num_layers} blocks, {name}, seed {seed}')
        row = {
          'measures': name,
          'layers': shape.num_layers,
          'hidden_dim': shape.hidden_dim,
          'seed': seed,
        }
        rows.append(row | runner.Run(shape, measures, seed))
        # Each takes minutes: shown also where the tool is ended early.
        report.Progress(report.Table(_COLUMNS, rows[-1:]))
  return rows


def Main() -> int:
  """The entry point; returns the exit status."""
  options = depth_training_runs.Options(
    architecture=_Architecture(),
    steps=_STEPS.value,
    batch_size=_BATCH_SIZE.value,
    sequence_length=_LENGTH.value,
    optimizer=_OPTIMIZER.value,
    learning_rate=_LEARNING_RATE.value,
    logits_abs_max=_LOGITS.value,
    gradient_norm=_NORM.value,
    use_norm=_FINAL_NORM.value,
  )
  rows = _Rows(options)
  print(report.Table(_COLUMNS, rows))
  if _OUTPUT.value:
    report.WriteJson(
      _OUTPUT.value,
      rows,
      architecture=_ARCHITECTURE.value,
      options=dataclasses.asdict(options),
    )
  return 0


if __name__ == '__main__':
  command.Run(Main)
