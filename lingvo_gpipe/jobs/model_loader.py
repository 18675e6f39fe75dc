"""From flags to a model: registry, overrides, checks.

All that can be wrong with what was typed comes out here, before anything long,
as a UserError.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from lingvo_gpipe import (
  base_input,
  base_layer,
  hyperparams,
  nested_map,
  registry,
  user_error,
)
from lingvo_gpipe.config import params_override
from lingvo_gpipe.gpipe import division, micro_batch, num_micro_batches
from lingvo_gpipe.gpipe.planning import partition, splits
from lingvo_gpipe.jobs import flags, input_flags

# Datasets that are evaluated, by their names in results and summaries.
EVAL_DATASETS = {'dev': 'Dev', 'test': 'Test'}


@dataclasses.dataclass(frozen=True)
class Model:
  """A registered model with the command's changes.

  Attributes:
    name: in the registry.
    source: where its class is defined, 'file:line'.
    params: of the task, with the training data's input.
    eval_inputs: {'dev' or 'test': input params}, as far as the model has them.
    is_overridden: whether the command changed params by their paths.
  """

  name: str
  source: str
  params: hyperparams.InstantiableParams
  eval_inputs: dict[str, hyperparams.InstantiableParams]
  is_overridden: bool

  @property
  def num_partitions(self) -> int:
    """K, known before anything is instantiated."""
    net = self.params.net
    return net.num_partitions if net.splits is None else len(net.splits)

  @property
  def num_replicas(self) -> int:
    """R, likewise."""
    return self.params.net.num_replicas

  def Instantiate(
    self, params: hyperparams.InstantiableParams | None = None
  ) -> Any:
    """Makes the task, or what other params describe.

    Args:
      params: None for the task's.

    Returns:
      The object.

    Raises:
      UserError: where an override has made it impossible.
    """
    with user_error.Expected(
      ValueError,
      TypeError,
      AttributeError,
      prefix='--model_params_override does not fit the model: ',
      when=self.is_overridden,
    ):
      return (params or self.params).Instantiate()


def Load(options: flags.Options) -> Model:
  """Finds the model and applies the flags to its params.

  Args:
    options: the flags.

  Returns:
    The Model; nothing is instantiated yet.

  Raises:
    UserError: for a module or model that is not there, an override that cannot
      be applied, and numbers of partitions that do not fit the cells.
  """
  ImportModules(options)
  with user_error.Expected(registry.UnknownModelError):
    cls = registry.GetClass(options.model)
  datasets = cls().GetDatasetNames()
  if 'Train' not in datasets:
    raise user_error.UserError(
      f'--model={options.model} has no training data: define its method Train'
    )
  model = Model(
    name=options.model.removeprefix('params.'),
    source=registry.GetSource(options.model),
    params=_Params(options, 'Train'),
    eval_inputs={
      key: _Params(options, name).input
      for key, name in EVAL_DATASETS.items()
      if name in datasets
    },
    is_overridden=bool(options.model_params_override),
  )
  input_flags.CheckUsed(
    options, [model.params.input, *model.eval_inputs.values()]
  )
  _CheckCells(model)
  return model


def ImportModules(options: flags.Options) -> None:
  """Imports the modules of --import.

  Args:
    options: the flags.

  Raises:
    UserError: where there is no such module. A module that is there and fails
      keeps its own error.
  """
  try:
    registry.ImportModules(options.imports)
  except ModuleNotFoundError as e:
    if e.name not in options.imports:
      raise
    raise user_error.UserError(e) from e


def Inputs(model: Model) -> dict[str, base_input.BaseInput]:
  """The inputs, with batches that can be split; reads no data.

  Args:
    model: as loaded.

  Returns:
    {'train', 'dev' or 'test': input}, 'train' always.

  Raises:
    UserError: where training mini-batches do not fit M, or come in too many
      shapes.
  """
  inputs = {
    name: model.Instantiate(params)
    for name, params in {
      'train': model.params.input,
      **model.eval_inputs,
    }.items()
  }
  with user_error.Expected(ValueError, prefix='train data: '):
    _CheckBatches(model, inputs['train'].BatchSpecs())
  return inputs


def _CheckBatches(
  model: Model, batch_specs: Sequence[nested_map.NestedMap]
) -> None:
  """Raises ValueError for mini-batches that the network would refuse."""
  net = model.params.net
  kinds = set()
  for spec in batch_specs:
    batch_size = micro_batch.BatchSize(spec)
    m = num_micro_batches.ChooseNumMicroBatches(
      batch_size,
      model.num_partitions,
      num_micro_batches=net.num_micro_batches,
      micro_batch_size=net.micro_batch_size,
      num_replicas=net.num_replicas,
      padded=net.pad_batches,
    )
    # What is traced is a micro-batch, and a last one that is not full.
    divided = division.Division(batch_size, net.num_replicas, m)
    kinds.add((repr(divided.MicroSpecs(spec)), divided.padded_from))
  if len(kinds) > net.max_batch_shapes:
    raise ValueError(
      f'mini-batches come in {len(kinds)} shapes, more than '
      f'net.max_batch_shapes={net.max_batch_shapes}, and each is traced; pad '
      'sequences to fewer lengths (buckets), or raise net.max_batch_shapes'
    )


def CheckData(inputs: Mapping[str, base_input.BaseInput]) -> None:
  """Reads as much of the data as tells that it is there.

  Args:
    inputs: of Inputs.

  Raises:
    UserError: where it is not.
  """
  for dataset, generator in inputs.items():
    with user_error.Expected(
      OSError, ImportError, ValueError, prefix=f'{dataset} data: '
    ):
      if not generator.num_examples:
        raise ValueError(f'there are no examples: {generator.params}')


def _Params(
  options: flags.Options, dataset: str
) -> hyperparams.InstantiableParams:
  """The params with one dataset as input, changed by the flags."""
  params = registry.GetParams(options.model, dataset)
  num_partitions = options.num_partitions or (
    options.num_worker_devices
    // (options.num_replicas or params.net.num_replicas)
  )
  split_flag = (
    '--worker_split_size'
    if options.num_partitions
    else ('--local_workers' if options.local_workers else '--worker_hosts')
  )
  wishes = {
    split_flag: ('net.num_partitions', num_partitions),
    '--worker_replicas': ('net.num_replicas', options.num_replicas),
    '--num_micro_batches': ('net.num_micro_batches', options.num_micro_batches),
    '--profile_cells': ('net.profile_cells', options.profile_cells),
    '--max_steps': ('train.max_steps', options.max_steps),
    '--saver_max_to_keep': ('train.save_max_to_keep', options.save_max_to_keep),
    '--saver_keep_every_steps': (
      'train.save_keep_every_steps',
      options.save_keep_every_steps,
    ),
    '--init_checkpoint': (
      'train.init_from.checkpoint',
      options.init_checkpoint,
    ),
  }
  for path, value in wishes.values():
    if value:
      params.SetPath(path, value)
  net = params.net
  if options.num_micro_batches:
    net.micro_batch_size = None
  if num_partitions and len(net.splits or ()) != num_partitions:
    net.splits = None
  input_flags.Apply(options, params.input, empty_only=False)
  with user_error.Expected(ValueError, prefix='--model_params_override: '):
    params_override.ApplyOverride(params, options.model_params_override)
  # Where the override has put another class of input, or of a part of one.
  input_flags.Apply(options, params.input, empty_only=True)
  for flag, (path, value) in wishes.items():
    if value and params.Get(path) != value:
      raise user_error.UserError(
        f'{flag}={value} and --model_params_override set {path} to different '
        'values; use one of the two'
      )
  with user_error.Expected(OSError, ValueError):
    registry.GetClass(options.model)().Complete(params)
  return params


def _CheckCells(model: Model) -> None:
  net = model.params.net
  if not net.cells:
    return  # GPipe says so.
  with user_error.Expected(ValueError):
    partition.CheckNumPartitions(model.num_partitions, len(net.cells))
    if net.splits is not None:
      splits.SplitsToPartitions(
        net.splits, base_layer.ChildNames('cells', net.cells)
      )
