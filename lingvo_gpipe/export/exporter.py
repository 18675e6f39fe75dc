"""From a registered model and its checkpoint to a SavedModel.

With the graph and the variables go some files, in the SavedModel's folder
`assets`:

  what the input's Assets() are, such as a vocabulary
  classes.txt  the name of a class in each line, where the input knows them
  model.json
    model, global_step  what was trained, and for how long
    averaged_weights    whether they are averages (train.ema)
    input_shape         of one example as the network sees it; of an image its
                        height, width and channels
    signatures          {name: {inputs, outputs: {name: {shape, dtype}}}}
    params              all params, as Params.FromText reads them
"""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf
from absl import logging

from lingvo_gpipe import base_input, base_task, nested_map, user_error
from lingvo_gpipe.export import saved_model, serving_module, serving_signature
from lingvo_gpipe.jobs import model_loader
from lingvo_gpipe.train import checkpoint, checkpoint_integrity

CLASSES_FILE = 'classes.txt'
MODEL_FILE = 'model.json'


def Export(
  model: model_loader.Model,
  *,
  prefix: str,
  output: str,
  overwrite: bool = False,
) -> dict[str, Any]:
  """Writes a SavedModel of a checkpoint.

  Args:
    model: as loaded.
    prefix: of the checkpoint, written with any number of partitions.
    output: directory to write.
    overwrite: whether it may replace a SavedModel that is there.

  Returns:
    What model.json holds.

  Raises:
    UserError: for an input without signatures, a checkpoint that is not there
      or of another model, and a directory that may not be written to.
  """
  saved_model.CheckOutput(output, overwrite=overwrite)
  source = _Input(model)
  task = model.Instantiate()
  with user_error.Expected(NotImplementedError, prefix=f'{model.name}: '):
    signatures = _Signatures(task, source)
  batch_spec = nested_map.NestedMap(
    # What only training has, such as mixed labels, matters for the loss only.
    {**model.Instantiate(model.params.input).BatchSpec(), **source.BatchSpec()}
  )
  with user_error.Expected(checkpoint.CheckpointError):
    checkpoint_integrity.CheckSizes(prefix)
    _CheckAverages(task, prefix)
    module = serving_module.ServingModule(task, batch_spec)
    restored = checkpoint.Checkpointer(
      os.path.dirname(prefix),
      module.variables_for_checkpoint,
      model=model.name,
    ).Restore(prefix, ignore_unused=True)
  functions = {
    name: module.Function(signature) for name, signature in signatures.items()
  }
  class_names = _ClassNames(source)
  _CheckNumClasses(class_names, functions)
  info = {
    'model': model.name,
    'global_step': restored['global_step'],
    'averaged_weights': task.ema.enabled,
    'input_shape': list(batch_spec[task.net.params.input_field].shape[1:]),
    'signatures': {
      name: {
        'inputs': _Specs(
          {signatures[name].input_spec.name: function.inputs[0]}
        ),
        'outputs': _Specs(function.structured_outputs),
      }
      for name, function in functions.items()
    },
    'params': model.params.ToText(),
  }
  assets: dict[str, str | bytes] = dict(source.Assets())
  assets[MODEL_FILE] = json.dumps(info, indent=2, sort_keys=True) + '\n'
  if class_names:
    assets[CLASSES_FILE] = ''.join(f'{name}\n' for name in class_names)
  saved_model.Write(module, functions, assets, output, overwrite=overwrite)
  return info


def _Input(model: model_loader.Model) -> base_input.BaseInput:
  """The input of evaluation, or of training where there is no other."""
  inputs = model.eval_inputs
  return model.Instantiate(
    inputs.get('test') or inputs.get('dev') or model.params.input
  )


def _Signatures(
  task: base_task.BaseTask, source: base_input.BaseInput
) -> dict[str, serving_signature.ServingSignature]:
  """Those of the decoder, for models that write something."""
  if task.params.decoder is None:
    return source.ServingSignatures()
  decoder = task.params.decoder.Instantiate(
    net=task.net, input_generator=source
  )
  return decoder.ServingSignatures()


def _CheckAverages(task: base_task.BaseTask, prefix: str) -> None:
  """Raises UserError for averages that these params would leave unused."""
  if task.ema.enabled:
    return
  saved = checkpoint_integrity.ReadVariables(prefix)
  specs = tf.nest.flatten(task.net.VariableSpecs())
  if any(f'{spec.path}/ema' in saved for spec in specs):
    raise user_error.UserError(
      f'checkpoint {prefix} has averages of the weights, which the params '
      'switch off; repeat what the run was started with, as in '
      '--model_params_override=train.ema.decay=0.999'
    )


def _ClassNames(source: base_input.BaseInput) -> list[str]:
  """The names of the classes, each of one line; [] where nobody knows them."""
  get_names = getattr(source, 'ClassNames', None)
  if get_names is None:
    return []
  try:
    return [' '.join(name.split()) for name in get_names()]
  except user_error.UserError as e:
    # A model may be exported where its data is not.
    logging.warning('no names of classes are exported: %s', e)
    return []


def _CheckNumClasses(class_names: list[str], functions: dict[str, Any]) -> None:
  for name, function in functions.items():
    probabilities = function.structured_outputs.get('probabilities')
    if class_names and probabilities is not None:
      count = probabilities.shape[-1]
      if count != len(class_names):
        raise user_error.UserError(
          f'the signature {name} gives {count} probabilities, but the input '
          f'has the names of {len(class_names)} classes; set num_classes of '
          'the network and of the input to the same number'
        )


def _Specs(tensors: dict[str, tf.Tensor]) -> dict[str, Any]:
  return {
    name: {'shape': list(tensor.shape), 'dtype': tensor.dtype.name}
    for name, tensor in tensors.items()
  }
