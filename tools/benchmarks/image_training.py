"""Measures how many images a second a ResNet trains on, beside plain Keras.

  python -m tools.benchmarks.image_training --image_size=64 --batch=32

Keras and our network without a pipeline train in this process on as many
threads as there are workers; the pipelines on worker processes, a core each.
All start from the same weights, see the same mini-batch, take a step in turn,
and the losses of the first step must agree. (With several micro-batches batch
norm sees fewer examples at a time, and losses differ.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import flags

from lingvo_gpipe import base_task, cluster, nested_map, user_error
from lingvo_gpipe.gpipe import device_names
from lingvo_gpipe.layers import norm
from lingvo_gpipe.train import optimizers
from lingvo_gpipe.workers import local_workers
from tasks.image import resnet
from tools.benchmarks import command, harness, keras_resnet, pipeline, report

_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
_NUM_CLASSES = 1000
_LEARNING_RATE = 0.01
# Of the first losses, which float32 sums in different orders.
_TOLERANCE = 1e-3

_DEPTH = flags.DEFINE_enum(
  'depth', '50', ['50', '101'], 'Layers of the ResNet.'
)
_IMAGE_SIZE = flags.DEFINE_integer(
  'image_size', 64, 'Height and width.', lower_bound=32
)
_BATCH = flags.DEFINE_integer('batch', 32, 'Of a mini-batch.', lower_bound=2)
_MICRO_BATCHES = flags.DEFINE_integer(
  'micro_batches', 4, 'M of the pipeline.', lower_bound=1
)
_WORKERS = flags.DEFINE_integer(
  'workers', 2, 'K of the pipeline, and threads of the others.', lower_bound=1
)
_ROUNDS = flags.DEFINE_integer('rounds', 5, 'Measured steps.', lower_bound=1)

_OUTPUT = flags.DEFINE_string(
  'output', '', 'File to write the results to as JSON. Empty: none.'
)

# This process, connected to workers.
_CLIENT = f'/job:{device_names.CLIENT_JOB}/replica:0/task:0/device:CPU:0'

_COLUMNS = (
  report.Column('name', ''),
  report.Column('num_micro_batches', 'M'),
  report.Column('seconds', 's/step', report.Seconds),
  report.Column('lower', '25%', report.Seconds),
  report.Column('upper', '75%', report.Seconds),
  report.Column('images_per_second', 'images/s', report.Ratio),
  report.Column('of_keras', 'of Keras', report.Ratio),
  report.Column('loss', 'first loss', lambda x: f'{x:.4f}'),
)


@dataclasses.dataclass(frozen=True)
class Subject:
  """What is measured.

  Attributes:
    name: in the table.
    num_micro_batches: M.
    step: trains a step and returns its loss.
  """

  name: str
  num_micro_batches: int
  step: Callable[[], float]


def _Batch() -> nested_map.NestedMap:
  size, batch = _IMAGE_SIZE.value, _BATCH.value
  draw = tf.random.stateless_uniform
  return nested_map.NestedMap(
    inputs=draw([batch, size, size, 3], (1, 2), -1.0, 1.0),
    labels=draw([batch], (3, 4), 0, _NUM_CLASSES, tf.int32),
    weights=tf.ones([batch]),
  )


def _Ours(
  name: str,
  devices: list[str],
  num_micro_batches: int,
  batch: nested_map.NestedMap,
) -> tuple[base_task.BaseTask, Subject]:
  """Our network on devices."""
  p = base_task.BaseTask.Params().Set(name='image')
  p.net.Set(
    cells=resnet.ResNetCells(
      depth=int(_DEPTH.value),
      num_classes=_NUM_CLASSES,
      zero_start=False,
      batch_norm=norm.BatchNorm.Params().Set(decay=0.9, epsilon=1e-5),
    ),
    num_partitions=len(devices),
    num_micro_batches=num_micro_batches,
    rematerialize='none',
  )
  p.train.learner.Set(
    optimizer=optimizers.SGD.Params(), learning_rate=_LEARNING_RATE
  )
  task = p.Instantiate()
  spec = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), batch)
  task.Plan(spec, devices)
  task.InstantiateVariables()
  step = tf.function(cluster.ReturnToClient(task.TrainStep), autograph=False)
  count = [0]

  def _Step() -> float:
    count[0] += 1
    return float(step(batch, tf.constant(count[0] - 1, tf.int64)).loss)

  return task, Subject(name, num_micro_batches, _Step)


def _Keras(
  task: base_task.BaseTask, batch: nested_map.NestedMap, device: str
) -> Subject:
  """Keras with the weights of a task."""
  with tf.device(device):
    model = keras_resnet.Model(
      num_blocks=_BLOCKS[int(_DEPTH.value)],
      image_size=_IMAGE_SIZE.value,
      num_classes=_NUM_CLASSES,
    )
    keras_resnet.CopyWeights(task.net.cells, model)
    optimizer = tf.keras.optimizers.SGD(_LEARNING_RATE)
    optimizer.build(model.trainable_variables)

  @tf.function(autograph=False)
  def _Step():
    with tf.GradientTape() as tape:
      losses = tf.keras.losses.sparse_categorical_crossentropy(
        batch.labels, model(batch.inputs, training=True), from_logits=True
      )
      loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(
      zip(gradients, model.trainable_variables, strict=True)
    )
    return loss

  def _OnDevice() -> float:
    with tf.device(device):
      return float(_Step())

  return Subject('Keras', 1, _OnDevice)


def _Measure(devices: list[str]) -> list[dict[str, Any]]:
  batch = _Batch()
  task, plain = _Ours('ours, no pipeline', [_CLIENT], 1, batch)
  subjects = [
    _Keras(task, batch, _CLIENT),
    plain,
    _Ours(f'ours, {len(devices)} workers', devices, 1, batch)[1],
    _Ours(
      f'ours, {len(devices)} workers', devices, _MICRO_BATCHES.value, batch
    )[1],
  ]
  first = {}
  for subject in subjects:
    first[subject] = subject.step()
    report.Progress(
      f'{subject.name}, M={subject.num_micro_batches}: loss '
      f'{first[subject]:.4f}'
    )
  CheckLosses(first)
  samples = harness.Alternate(
    {subject: subject.step for subject in subjects},
    rounds=_ROUNDS.value,
    warmups=1,
    progress=report.Progress,
  )
  rows = []
  for subject in subjects:
    summary = harness.Summarize([s.seconds for s in samples[subject]])
    rows.append(
      {
        'name': subject.name,
        'num_micro_batches': subject.num_micro_batches,
        'seconds': summary.median,
        'lower': summary.lower,
        'upper': summary.upper,
        'images_per_second': _BATCH.value / summary.median,
        'loss': first[subject],
      }
    )
  for row in rows:
    row['of_keras'] = rows[0]['seconds'] / row['seconds']
  return rows


def CheckLosses(losses: dict[Subject, float]) -> None:
  """Raises unless the networks are the same."""
  whole = {s.name: x for s, x in losses.items() if s.num_micro_batches == 1}
  low, high = min(whole.values()), max(whole.values())
  if not high - low <= _TOLERANCE * abs(high):
    raise RuntimeError(f'the losses of the first step differ: {whole}')


def Main() -> int:
  """Measures and prints; returns the exit status."""
  if _BATCH.value % _MICRO_BATCHES.value:
    raise user_error.UserError(
      f'--batch={_BATCH.value} is not divisible into --micro_batches='
      f'{_MICRO_BATCHES.value}'
    )
  tf.config.threading.set_intra_op_parallelism_threads(_WORKERS.value)
  with local_workers.LocalWorkers(_WORKERS.value) as workers:
    rows = _Measure(list(cluster.Connect(workers.addresses).devices))
    pipeline.FreeUnused()
  print(report.Table(_COLUMNS, rows))
  if _OUTPUT.value:
    report.WriteJson(_OUTPUT.value, rows, image_size=_IMAGE_SIZE.value)
  return 0


if __name__ == '__main__':
  command.Run(Main)
