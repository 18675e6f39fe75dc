"""Tiny registered models that the trainer's tests run by name."""

from __future__ import annotations

import json
import time

import tensorflow as tf

from lingvo_gpipe import (
  base_decoder,
  base_input,
  base_model_params,
  base_task,
  fprop_context,
  metrics,
  nested_map,
  registry,
)
from lingvo_gpipe.gpipe import test_cells
from lingvo_gpipe.train import optimizers

_DIM = 4
_NUM_CLASSES = 3


class Points(base_input.RandomAccessInput):
  """Random points, whose class is their largest coordinate of three."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('num_points', 100, 'Examples of one pass.')
    p.Define('points_seed', 7, 'Of the coordinates.')
    p.Define('nan_from', None, 'From this batch on, points are not a number.')
    p.Define(
      'pause', 0.0, 'Seconds that a batch takes, for tests that interfere.'
    )
    return p.Set(batch_size=16)

  @property
  def num_examples(self):
    return self.params.num_points

  def BatchSpec(self):
    n = self.params.batch_size
    return nested_map.NestedMap(
      inputs=tf.TensorSpec([n, _DIM], tf.float32),
      labels=tf.TensorSpec([n], tf.int32),
      weights=tf.TensorSpec([n], tf.float32),
    )

  def Dataset(self, position=0):
    def _Pause(batch):
      wait = tf.numpy_function(lambda: time.sleep(pause), [], [])
      with tf.control_dependencies([wait]):
        return tf.nest.map_structure(tf.identity, batch)

    dataset, pause = super().Dataset(position), self.params.pause
    return dataset.map(_Pause) if pause else dataset

  def Examples(self, indices, seed):
    p = self.params
    points = tf.random.stateless_normal(
      [p.num_points, _DIM], (p.points_seed, 0)
    )
    inputs = tf.gather(points, indices)
    labels = tf.argmax(inputs[:, :_NUM_CLASSES], 1, tf.int32)
    if p.nan_from is not None:
      inputs += tf.where(seed[1] >= p.nan_from, float('nan'), 0.0)
    return {'inputs': inputs, 'labels': labels}


class Classify(test_cells.Linear):
  """Softmax over the classes: loss, accuracy; in evaluation also logits."""

  BATCH_FIELDS = ('labels', 'weights')

  def FProp(self, theta, inputs, batch):
    logits = inputs @ theta.w + theta.b
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      batch.labels, logits
    )
    correct = tf.argmax(logits, 1, tf.int32) == batch.labels
    outputs = nested_map.NestedMap(
      loss=metrics.Weighted(losses, batch.weights),
      accuracy=metrics.Weighted(tf.cast(correct, losses.dtype), batch.weights),
    )
    if self.do_eval:
      outputs.logits = logits
    return outputs


@registry.RegisterSingleTaskModel
class Tiny(base_model_params.SingleTaskModelParams):
  """Four cells with dropout and batch norm; a step takes a millisecond."""

  def Train(self):
    return Points.Params().Set(training=True)

  def Dev(self):
    return Points.Params().Set(points_seed=8, num_points=20)

  def Test(self):
    return Points.Params().Set(points_seed=9, num_points=40)

  def Task(self):
    p = base_task.BaseTask.Params().Set(name='tiny')
    linear = test_cells.Linear.Params().Set(input_dim=_DIM, output_dim=_DIM)
    p.net.cells = [
      linear.Copy().Set(name='first'),
      test_cells.Norm.Params().Set(name='norm', dim=_DIM),
      linear.Copy().Set(name='second', keep_prob=0.9),
      Classify.Params().Set(
        name='classify', input_dim=_DIM, output_dim=_NUM_CLASSES
      ),
    ]
    p.net.num_micro_batches = 4
    p.train.Set(max_steps=30, log_interval_steps=10, summary_interval_steps=5)
    p.train.learner.Set(
      optimizer=optimizers.Momentum.Params(), learning_rate=0.1
    )
    return p


class Namer(base_decoder.BaseDecoder):
  """Writes the name of each point's class."""

  def Decode(self, theta, batch):
    x = batch.inputs
    for cell, of_cell in zip(self.net.cells[:-1], theta.cells, strict=False):
      x = cell.FProp(of_cell, x)
    logits = x @ theta.cells[-1].w + theta.cells[-1].b
    return nested_map.NestedMap(named=tf.argmax(logits, 1))

  def Rows(self, batch, outputs):
    return [
      {'label': int(label), 'named': int(named)}
      for label, named in zip(batch['labels'], outputs['named'], strict=True)
    ]

  def Write(self, path, rows):
    with open(path, 'w', encoding='utf-8') as f:
      f.writelines(f'{json.dumps(row)}\n' for row in rows)

  def Scores(self, rows):
    right = sum(row['label'] == row['named'] for row in rows)
    return {'named': right / len(rows)}


@registry.RegisterSingleTaskModel
class Named(Tiny):
  """Tiny with a decoder."""

  def Task(self):
    p = super().Task()
    p.decoder = Namer.Params()
    return p


class Bursts(test_cells.Linear):
  """Not finite in micro-batch 2: outputs in steps 5, 6, gradients from 9 on."""

  def FProp(self, theta, inputs):
    context = fprop_context.Current()
    here = tf.equal(context.micro_batch, 2)
    step = tf.cast(context.global_step, tf.int64)
    x = super().FProp(theta, inputs)
    x += tf.where(here & ((step == 4) | (step == 5)), float('inf'), 0.0)
    zero = x - tf.stop_gradient(x)
    return x * tf.sqrt(tf.where(here & (step >= 8), 1e-30 * zero, 1.0)) + x


@registry.RegisterSingleTaskModel
class Bursting(Tiny):
  """Tiny with a cell that is not always finite."""

  def Task(self):
    p = super().Task()
    p.net.cells[2] = Bursts.Params().Set(
      name='second', input_dim=_DIM, output_dim=_DIM
    )
    return p


@registry.RegisterSingleTaskModel
class Wide(Tiny):
  """Another model: a class more, and no test data."""

  Test = base_model_params.SingleTaskModelParams.Test

  def Task(self):
    p = super().Task()
    p.net.cells[-1].output_dim = _NUM_CLASSES + 1
    return p


@registry.RegisterSingleTaskModel
class Giant(Tiny):
  """Six billion parameters, to be looked at only."""

  WIDTH = 25_000

  def Task(self):
    p = super().Task()
    wide = test_cells.Linear.Params().Set(
      input_dim=self.WIDTH, output_dim=self.WIDTH
    )
    first, *unused, last = p.net.cells
    p.net.cells = [
      first.Set(output_dim=self.WIDTH),
      *(wide.Copy().Set(name=f'wide_{i}') for i in range(10)),
      last.Set(input_dim=self.WIDTH),
    ]
    return p


def MakeTiny(
  cls: type[Tiny] = Tiny,
) -> tuple[base_task.BaseTask, dict[str, Points]]:
  """The task of Tiny with variables, and its inputs by dataset."""
  model = cls()
  task = model.Model().Instantiate()
  inputs = {
    name.lower(): model.GetDatasetParams(name).Instantiate()
    for name in model.GetDatasetNames()
  }
  task.Plan(inputs['train'].BatchSpec())
  task.InstantiateVariables()
  return task, inputs
