"""Measures how many pairs a second the input of translation gives.

  python -m tools.benchmarks.translation_input --data_dir=/tmp/django_mt

The data is what tools/mt/prepare has written; without --data_dir, record files
of random ids with the lengths of usual sentences are made for the measurement.
"start" is reading all of it, which each process does once; then mini-batches
come as training has them, in buckets and packed, and as evaluation does. Where
the machine does other work too, pairs per second of a core are what counts.
"""

from __future__ import annotations

import statistics
import tempfile
import time

from absl import flags

from lingvo_gpipe import quiet_import
from tools.benchmarks import command, report

_DATA_DIR = flags.DEFINE_string(
  'data_dir', '', 'Prepared data. Empty: some is made.'
)
_PAIRS = flags.DEFINE_integer('pairs', 200_000, 'Of data that is made.', 2)
_GROUPS = flags.DEFINE_integer('groups', 100, 'Likewise, directions.', 1)
_BATCH_TOKENS = flags.DEFINE_integer(
  'batch_tokens', 8192, 'Ids of a mini-batch, on each side, with padding.', 128
)
_SECONDS = flags.DEFINE_float(
  'seconds', 3.0, 'How long each measurement takes.', lower_bound=0.1
)
_ROUNDS = flags.DEFINE_integer(
  'rounds', 3, 'Measurements of each row, in turn; the median counts.', 1
)
_OUTPUT = flags.DEFINE_string('output', '', 'JSON file to write. Empty: none.')

_COLUMNS = (
  report.Column('mode', 'mode'),
  report.Column('start_seconds', 'start s', report.Seconds),
  report.Column('pairs_per_second', 'pairs/s', report.Count),
  report.Column('pairs_per_core_second', 'pairs/core s', report.Count),
  report.Column('ids_per_second', 'ids/s', report.Count),
  report.Column('fill', 'fill', report.Percent),
)


def Main() -> int:
  """The tool."""
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help does without.
  from tools.benchmarks import generated_pairs, translation_pipelines

  with tempfile.TemporaryDirectory() as folder:
    data_dir = _DATA_DIR.value
    if not data_dir:
      report.Progress(f'writing {_PAIRS.value} pairs')
      data_dir = folder
      generated_pairs.Write(
        folder, num_pairs=_PAIRS.value, num_groups=_GROUPS.value
      )
    inputs = translation_pipelines.Inputs(data_dir, _BATCH_TOKENS.value)
    starts, speeds = {}, {key: [] for key in inputs}
    for key, generator in inputs.items():
      report.Progress(f'reading: {key}')
      begin = time.perf_counter()
      _ = generator.num_batches
      starts[key] = time.perf_counter() - begin
    for i in range(_ROUNDS.value):
      report.Progress(f'round {i + 1}/{_ROUNDS.value}')
      for key, generator in inputs.items():
        speeds[key].append(
          translation_pipelines.Measure(
            generator,
            _SECONDS.value,
            time.perf_counter,
            time.process_time,
          )
        )
  rows = [
    {
      'mode': key,
      'start_seconds': starts[key],
      'pairs_per_second': statistics.median(x.pairs for x in values),
      'pairs_per_core_second': statistics.median(
        x.pairs_per_core for x in values
      ),
      'ids_per_second': statistics.median(x.ids for x in values),
      'fill': statistics.median(x.fill for x in values),
      'all_pairs_per_second': [x.pairs for x in values],
    }
    for key, values in speeds.items()
  ]
  print(report.Table(_COLUMNS, rows))
  if _OUTPUT.value:
    report.WriteJson(
      _OUTPUT.value,
      rows,
      data_dir=_DATA_DIR.value,
      num_pairs=inputs['buckets'].num_examples,
      num_groups=len(inputs['buckets'].groups),
      batch_tokens=_BATCH_TOKENS.value,
      seconds=_SECONDS.value,
    )
  return 0


if __name__ == '__main__':
  command.Run(Main)
