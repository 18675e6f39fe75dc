"""From a registered model's name to its costs."""

from __future__ import annotations

import dataclasses
import math

from lingvo_gpipe import user_error
from lingvo_gpipe.gpipe import micro_batch
from lingvo_gpipe.jobs import flags, model_loader
from tools.plan import model_costs


def Load(options: flags.Options, batch_size: int = 0) -> model_costs.NetCosts:
  """Finds a model; takes no memory for it and reads no data.

  What its params say about partitions, micro-batches, the schedule and
  re-materialization does not matter.

  Args:
    options: name of the model, overrides, modules to import.
    batch_size: of the mini-batch, for inputs with this param; 0: what the
      model says.

  Returns:
    The costs.

  Raises:
    UserError: for all that can be wrong with the options, and a batch size that
      the input does not go by.
  """
  options = dataclasses.replace(
    options, mode='inspect_model', num_partitions=1, num_micro_batches=1
  )
  model = model_loader.Load(options)
  params = model.params
  params.net.Set(
    num_partitions=1,
    num_chunks=1,
    splits=None,
    schedule='1f1b',
    rematerialize='none',
    jit_compile=False,
    profile_cells=False,
  )
  if batch_size:
    if 'batch_size' not in params.input:
      raise user_error.UserError(
        f'--batch_size={batch_size}: the input of {model.name} has no param '
        'batch_size; change its params by --model_params_override'
      )
    params.input.batch_size = batch_size
  task = model.Instantiate()
  data = model_loader.Inputs(model)['train']
  spec = data.BatchSpec()
  if batch_size and micro_batch.BatchSize(spec) != batch_size:
    raise user_error.UserError(
      f'--batch_size={batch_size}: mini-batches of {model.name} have '
      f'{micro_batch.BatchSize(spec)} examples whatever input.batch_size is; '
      'change what else its input goes by, such as input.batch_tokens, by '
      '--model_params_override'
    )
  return model_costs.NetCosts(
    task.net,
    spec,
    divisible=math.gcd(*map(micro_batch.BatchSize, data.BatchSpecs())),
    state_specs=task.StateSpecs(),
  )
