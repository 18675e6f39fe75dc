"""Measures how many images a second the input of image classification gives.

  python -m tools.benchmarks.image_input --seconds=5

Pictures are JPEG files of 400 x 300 pixels, made for the measurement. They are
read from a tree of folders and from a TFDS dataset, as evaluation does, with
the random crop and flip of training, and with AutoAugment too.
"""

from __future__ import annotations

import statistics
import tempfile
import time

from absl import flags

from lingvo_gpipe import quiet_import
from tools.benchmarks import command, report

_IMAGE_SIZE = flags.DEFINE_integer(
  'image_size', 224, 'Height and width that images are brought to.', 1
)
_BATCH = flags.DEFINE_integer('batch', 64, 'Images of a mini-batch.', 1)
_PICTURES = flags.DEFINE_integer(
  'pictures', 512, 'Different pictures.', lower_bound=2
)
_SECONDS = flags.DEFINE_float(
  'seconds', 3.0, 'How long each measurement takes.', lower_bound=0.1
)
_ROUNDS = flags.DEFINE_integer(
  'rounds', 3, 'Measurements of each row, in turn; the median counts.', 1
)
_PARALLEL = flags.DEFINE_integer(
  'num_parallel_calls', 0, "The input's param; 0: as tf.data thinks best.", 0
)
_OUTPUT = flags.DEFINE_string('output', '', 'JSON file to write. Empty: none.')

_COLUMNS = (
  report.Column('source', 'source'),
  report.Column('transforms', 'transforms'),
  report.Column('images_per_second', 'images/s', report.Count),
)


def Main() -> int:
  """The tool."""
  quiet_import.ImportTensorFlow(quiet=True)
  # Only now: these import TensorFlow, which --help does without.
  from tools.benchmarks import generated_pictures, image_pipelines

  with tempfile.TemporaryDirectory() as folder:
    report.Progress(f'writing {_PICTURES.value} pictures')
    folders, dataset, size = generated_pictures.Write(folder, _PICTURES.value)
    inputs = image_pipelines.Inputs(
      folders,
      dataset,
      image_size=_IMAGE_SIZE.value,
      batch_size=_BATCH.value,
      num_parallel_calls=_PARALLEL.value,
    )
    rates = {key: [] for key in inputs}
    for i in range(_ROUNDS.value):
      report.Progress(f'round {i + 1}/{_ROUNDS.value}')
      for key, generator in inputs.items():
        rates[key].append(
          image_pipelines.Rate(generator, _SECONDS.value, time.perf_counter)
        )
  rows = [
    {
      'source': source,
      'transforms': transforms,
      'images_per_second': statistics.median(values),
      'all_images_per_second': values,
    }
    for (source, transforms), values in rates.items()
  ]
  print(report.Table(_COLUMNS, rows))
  if _OUTPUT.value:
    report.WriteJson(
      _OUTPUT.value,
      rows,
      image_size=_IMAGE_SIZE.value,
      batch=_BATCH.value,
      num_parallel_calls=_PARALLEL.value,
      bytes_per_picture=size,
      seconds=_SECONDS.value,
    )
  return 0


if __name__ == '__main__':
  command.Run(Main)
