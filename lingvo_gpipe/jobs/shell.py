"""--mode=shell: a Python prompt with the model at hand.

  task      the model on this machine's devices, restored from the newest
            checkpoint of --logdir if there is one
  inputs    {'train', 'dev' or 'test': input}
  params    of the task
  step      of the checkpoint; 0 without one
  Batch(dataset='train', position=0)   a mini-batch
  Eval(batch)                          its metrics, and what evaluation says
  Gradients(batch)                     its loss and gradients

Nothing is written.
"""

from __future__ import annotations

import code
import sys
import tempfile
from typing import Any

import tensorflow as tf

from lingvo_gpipe import metrics, nested_map
from lingvo_gpipe.jobs import flags, model_loader, prepared_model
from lingvo_gpipe.jobs import logdir as logdir_lib


def Names(options: flags.Options) -> dict[str, Any]:
  """What the prompt knows.

  Args:
    options: the flags.

  Returns:
    {name: object}.

  Raises:
    UserError: as of PreparedModel.
  """
  model = model_loader.Load(options)
  # Without --logdir an empty one: nothing is read from it or written to it.
  with tempfile.TemporaryDirectory() as empty:
    logdir = logdir_lib.LogDir(options.logdir or empty)
    prepared = prepared_model.PreparedModel(options, model, logdir, None)
    restored = prepared.RestoreOrInit()
  task, inputs = prepared.task, prepared.inputs

  def Batch(dataset: str = 'train', position: int = 0) -> nested_map.NestedMap:
    batches = iter(inputs[dataset].Dataset(position).take(1))
    return nested_map.NestedMap(next(batches))

  def Eval(batch: nested_map.NestedMap) -> nested_map.NestedMap:
    result = tf.function(task.EvalOutputs, autograph=False)(batch)
    means = {
      name: float(metrics.WeightedSum(*value).Mean())
      for name, value in result.metrics.items()
    }
    return nested_map.NestedMap(**means, **result.outputs)

  def Gradients(batch: nested_map.NestedMap) -> nested_map.NestedMap:
    step = tf.constant(restored['global_step'] if restored else 0, tf.int64)
    return tf.function(task.net.ComputeGradients, autograph=False)(batch, step)

  return {
    'tf': tf,
    'task': task,
    'inputs': inputs,
    'params': model.params,
    'step': restored['global_step'] if restored else 0,
    'Batch': Batch,
    'Eval': Eval,
    'Gradients': Gradients,
  }


def Run(options: flags.Options) -> int:
  """Reads and runs commands until the end of the input.

  Args:
    options: the flags.

  Returns:
    The exit status.
  """
  names = Names(options)
  code.interact(
    banner=f'\n{", ".join(names)}; help(shell) tells what they are',
    local={**names, 'shell': sys.modules[__name__]},
    exitmsg='',
  )
  return 0
