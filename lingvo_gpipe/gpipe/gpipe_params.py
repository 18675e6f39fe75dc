"""The params of the GPipe layer, and which of them do not go together."""

from __future__ import annotations

from lingvo_gpipe import hyperparams
from lingvo_gpipe.gpipe.planning import policies


def Define(p: hyperparams.InstantiableParams) -> None:
  """Adds the params of the layer to those of any layer."""
  p.Define('cells', [], 'Params of the cells, from the first to the last.')
  p.Define('num_partitions', 1, 'K, how many parts the cells are cut into.')
  p.Define(
    'num_replicas',
    1,
    'R, how many replicas of the pipeline share a mini-batch, each on devices '
    'of its own. Their gradients are summed: results are those of one '
    'pipeline with R x M micro-batches.',
  )
  p.Define(
    'splits',
    None,
    'The cut by hand: number of cells of each partition, or names of the '
    'last cell of each. None: the best cut by the cost of the cells.',
  )
  p.Define(
    'num_micro_batches',
    None,
    'M, how many micro-batches a mini-batch, or the part of it that a replica '
    'has, is split into. None: 4K as the paper advises, or what is nearest and '
    "divides the mini-batch's size.",
  )
  p.Define(
    'micro_batch_size',
    None,
    'Examples in a micro-batch, another way to say num_micro_batches.',
  )
  p.Define(
    'schedule',
    '1f1b',
    'In which order a device runs forward and backward passes: "gpipe", the '
    'paper\'s fill and drain; "1f1b", which keeps no more than K '
    'micro-batches; "eager_1f1b", which keeps up to 2K and hides transfers; '
    '"interleaved", with num_chunks partitions on each device.',
  )
  p.Define(
    'num_chunks',
    1,
    'V, how many partitions each device has in the interleaved schedule: the '
    'cells are cut into K x V.',
  )
  p.Define(
    'rematerialize',
    'partition',
    'What the backward pass computes again: "partition", all of a partition '
    'from its inputs; "cell", cell by cell, for the least memory; "none"; '
    '"auto", no more than device_memory demands. Or a list with one of these '
    'for each partition.',
  )
  p.Define(
    'device_memory',
    None,
    'Bytes of a device that its partitions may take, by count: no cut takes '
    'more. The count leaves out what kernels and TensorFlow itself need, so '
    'say some 20% less than there is. None: no bound.',
  )
  p.Define(
    'balance',
    'time',
    'What the cut makes small: "time" of a step, or "memory" of the largest '
    'partition.',
  )
  p.Define(
    'transfer_cost',
    10.0,
    'FLOPs that a device could do while it sends a byte to another. The '
    'default suits one processor core and the loopback interface: 4 for small '
    'convolutions, 50 for large matrix products. An accelerator may have some '
    '300 (NVLink) to 5,000 (data centre network).',
  )
  p.Define(
    'profile_cells',
    False,
    'Whether the cut goes by measured times: Plan then runs each kind of '
    'cell several times (--profile_cells). Else by counted FLOPs.',
  )
  p.Define(
    'pad_batches',
    False,
    'Whether mini-batches that do not divide into M are filled up; the rows '
    'added weigh nothing. The last cell must read weights_field. Else they '
    'are an error.',
  )
  p.Define(
    'weights_field',
    'weights',
    "The batch's field of the weights of examples, for pad_batches.",
  )
  p.Define(
    'max_batch_shapes',
    16,
    'In how many shapes mini-batches may come in training, such as buckets of '
    'sequence lengths. Each is traced once; one more is an error, lest tracing '
    'goes on for ever.',
  )
  p.Define(
    'jit_compile',
    False,
    'Whether XLA compiles the partitions, or a list with one for each.',
  )
  p.Define('input_field', 'inputs', "The batch's field that cell 0 receives.")


def NumPartitions(p: hyperparams.Params) -> int:
  """K, or K x V in the interleaved schedule."""
  if p.splits is not None:
    return len(p.splits)
  return p.num_partitions * p.num_chunks


def JitCompile(p: hyperparams.Params) -> list[bool]:
  """Whether XLA compiles each partition."""
  if isinstance(p.jit_compile, bool):
    return [p.jit_compile] * NumPartitions(p)
  return list(p.jit_compile)


def Check(p: hyperparams.Params, path: str) -> None:
  """Checks what can be wrong without a look at the cells.

  Args:
    p: the params.
    path: of the layer, for messages.

  Raises:
    ValueError: for params that are impossible, or do not go together.
  """
  if not p.cells:
    raise ValueError(f'{path}: its param "cells" is empty')
  if p.num_micro_batches is not None and p.micro_batch_size is not None:
    raise ValueError(
      f'{path}: set num_micro_batches={p.num_micro_batches} or '
      f'micro_batch_size={p.micro_batch_size}, not both'
    )
  if p.splits is not None and not len(p.splits):
    raise ValueError(
      f'{path}: splits is empty; give the number of cells, or the last '
      'cell, of each partition, or None for the best cut'
    )
  if p.num_chunks != 1 and p.schedule != 'interleaved':
    raise ValueError(
      f'{path}: num_chunks={p.num_chunks} needs schedule="interleaved", '
      f'not {p.schedule!r}'
    )
  if p.num_replicas < 1:
    raise ValueError(
      f'{path}: num_replicas={p.num_replicas} (--worker_replicas) must be 1 or '
      'more'
    )
  if p.num_chunks < 1:
    raise ValueError(f'{path}: num_chunks={p.num_chunks} must be 1 or more')
  if p.splits is not None:
    expected = p.num_partitions * p.num_chunks
    if len(p.splits) % p.num_chunks or (
      p.num_partitions != 1 and len(p.splits) != expected
    ):
      raise ValueError(
        f'{path}: splits={list(p.splits)} makes {len(p.splits)} '
        f'partitions, but num_partitions={p.num_partitions} '
        '(--worker_split_size)'
        + (f' and num_chunks={p.num_chunks}' if p.num_chunks > 1 else '')
        + '; set only one of the two'
      )
  if len(JitCompile(p)) != NumPartitions(p):
    raise ValueError(
      f'{path}: jit_compile={p.jit_compile} must be True, False, or a list of '
      f'one for each of the {NumPartitions(p)} partitions'
    )
  wanted = policies.Policies(p.rematerialize, NumPartitions(p))
  if policies.AUTO in wanted and p.device_memory is None:
    raise ValueError(
      f'{path}: rematerialize={p.rematerialize!r} needs to know '
      'device_memory, the bytes that a partition may take; or use "none", '
      '"partition" or "cell"'
    )
