"""Large mini-batches, beside the figures of the GPipe paper's Table 5.

  python -m tools.benchmarks.table_5 --output_dir=/tmp/table_5

The paper trains a Transformer Big from German to English with mini-batches of
260,000 to 4 million tokens, each four times the one before. This trains a small
model of many languages in the same way, with as many steps each, so that larger
mini-batches see more of the data, too; with --equal=tokens larger mini-batches
have fewer steps instead. Trends are what can be compared, not figures.
"""

from __future__ import annotations

import os
import tempfile

from absl import flags

from tools.benchmarks import command, report
from tools.benchmarks.paper import output, published
from tools.benchmarks.table_5 import picture, runs

_MODEL = flags.DEFINE_string(
  'model', 'mt.django.Small', 'The registered model to train.'
)
_BATCH_TOKENS = flags.DEFINE_multi_integer(
  'batch_tokens',
  [1024, 4096, 16384],
  'Tokens of a mini-batch; repeat the flag for several sizes.',
  lower_bound=1,
)
_STEPS = flags.DEFINE_integer(
  'steps', 400, 'Steps of the smallest mini-batch.', lower_bound=1
)
_EQUAL = flags.DEFINE_enum(
  'equal', 'steps', ['steps', 'tokens'], 'What all trainings have as much of.'
)
_OVERRIDE = flags.DEFINE_string(
  'model_params_override',
  'decoder.beam_size=1;eval.interval_steps=0',
  'Changes to the params of all.',
)
_TRAINER_FLAGS = flags.DEFINE_multi_string(
  'trainer_flag',
  [],
  'A flag for the trainer, such as --trainer_flag=--local_workers=2; repeat it '
  'for more.',
)
_LOGDIR = flags.DEFINE_string(
  'logdir',
  None,
  'A folder for the log directories of the runs, which are continued if they '
  'are there. Default: a temporary one.',
)

_COLUMNS = (
  report.Column('tokens', 'tokens', report.Count),
  report.Column('steps', 'steps'),
  report.Column('nll', 'nats per token', lambda x: f'{x:.3f}'),
  report.Column('bleu', 'BLEU', lambda x: f'{x:.2f}'),
  report.Column('chrf', 'chrF', lambda x: f'{x:.2f}'),
  report.Column('seconds', 'training, s', report.Seconds),
)


def Main() -> int:
  """The tool; returns the exit status."""
  tokens = sorted(set(_BATCH_TOKENS.value))
  with tempfile.TemporaryDirectory() as temporary:
    rows = [
      runs.Train(
        _MODEL.value,
        n,
        _STEPS.value
        if _EQUAL.value == 'steps'
        else max(1, _STEPS.value * tokens[0] // n),
        os.path.join(_LOGDIR.value or temporary, f'{n}_tokens'),
        override=_OVERRIDE.value,
        args=_TRAINER_FLAGS.value,
      )
      for n in tokens
    ]
  paper = [size._asdict() for size in published.BATCH_SIZES]
  output.Write(
    'table_5',
    [
      output.Section('paper', 'The paper, Transformer Big.', _COLUMNS, paper),
      output.Section('measured', f'{_MODEL.value}, test data.', _COLUMNS, rows),
    ],
    picture.Draw,
    model=_MODEL.value,
    equal=_EQUAL.value,
  )
  return 0


if __name__ == '__main__':
  command.Run(Main)
