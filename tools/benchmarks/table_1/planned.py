"""The largest of the paper's models that fit its devices, by arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_model_params
from params.image import imagenet
from params.lm import table1
from tools.benchmarks import layer_search, report
from tools.benchmarks.paper import published
from tools.plan import candidates as candidates_lib
from tools.plan import device as device_lib
from tools.plan import evaluation, model_costs

TRANSFORMER_MEMORY = 16 * 2**30
AMOEBANET_MEMORY = 8 * 2**30
# D grows by so much.
FILTERS_STEP = 16
# Of a pipeline; Naive-1 has one.
NUM_MICRO_BATCHES = 32


def Transformer(
  size: published.ModelSize, memory: int, schedule: str
) -> dict[str, Any]:
  """The largest L of Transformer-L.

  Args:
    size: the paper's column.
    memory: bytes of a device.
    schedule: of the passes.

  Returns:
    A row: setting, K, ours and the paper's size and parameters, and the bytes
    that the fullest device takes.
  """

  def _Model(num_layers: int) -> type[base_model_params.SplitModelParams]:
    return type('Model', (table1.TransformerL,), {'NUM_LAYERS': num_layers})

  found = _Largest(size, _Model, size.size, memory, schedule)
  return {'model': 'Transformer-L', **found, 'paper_size': str(size.size)}


def AmoebaNet(
  size: published.ModelSize, memory: int, schedule: str
) -> dict[str, Any]:
  """The largest D, a multiple of 16, of AmoebaNet-D (L, D) with the paper's L.

  Args:
    size: the paper's column.
    memory: bytes of a device.
    schedule: of the passes.

  Returns:
    See Transformer.
  """
  num_layers, filters = size.size

  def _Model(n: int) -> type[base_model_params.SplitModelParams]:
    return type(
      'Model',
      (imagenet.AmoebaNet,),
      {'NUM_LAYERS': num_layers, 'NUM_FILTERS': FILTERS_STEP * n},
    )

  found = _Largest(size, _Model, filters // FILTERS_STEP, memory, schedule)
  found['size'] = f'({num_layers}, {FILTERS_STEP * found["size"]})'
  return {'model': 'AmoebaNet-D', **found, 'paper_size': str(size.size)}


def _Largest(
  size: published.ModelSize,
  make_model: Callable[[int], type[base_model_params.SplitModelParams]],
  first: int,
  memory: int,
  schedule: str,
) -> dict[str, Any]:
  tried: dict[int, tuple[int, int]] = {}

  def _Try(n: int) -> float | None:
    tried[n] = Memory(make_model(n)(), size, schedule)
    needed, unused_params = tried[n]
    report.Progress(
      f'{size.setting}, size {n}: {needed / 2**30:.2f} GiB a device'
    )
    return needed if needed <= memory else None

  n = layer_search.LargestFitting(_Try, memory, first=first)
  needed, params = tried.get(n, (None, None))
  return {
    'setting': size.setting,
    'num_devices': size.devices,
    'size': n,
    'params': params,
    'memory': needed,
    'paper_params': size.parameters,
  }


def Memory(
  model: base_model_params.SplitModelParams,
  size: published.ModelSize,
  schedule: str,
) -> tuple[int, int]:
  """What a device needs at the least.

  Args:
    model: of a registered kind.
    size: says on how many devices, and whether as a pipeline.
    schedule: of its passes.

  Returns:
    (bytes of the fullest device, number of parameters).
  """
  params = model.Model()
  params.net.Set(num_partitions=1, splits=None, rematerialize='none')
  task = params.Instantiate()
  costs = model_costs.NetCosts(
    task.net,
    model.Train().Instantiate().BatchSpec(),
    state_specs=task.StateSpecs(),
  )
  naive = size.setting == 'Naive-1'
  m = 1 if naive else NUM_MICRO_BATCHES
  rejected = evaluation.Evaluator(
    costs, device_lib.Device(flops=1.0, link_speed=1.0)
  ).Reject(
    candidates_lib.Candidate(
      num_replicas=1,
      num_devices=size.devices,
      num_micro_batches=m,
      micro_batch_size=costs.batch_size // m,
      schedule=schedule,
      num_chunks=1,
      policy='none' if naive else 'cell',
    )
  )
  specs = tf.nest.flatten(task.net.VariableSpecs())
  return rejected.memory, sum(spec.size for spec in specs if spec.trainable)
