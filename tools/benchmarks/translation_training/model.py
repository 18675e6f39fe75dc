"""The translation model that is measured, its mini-batch, and both sides."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import tensorflow as tf

from lingvo_gpipe import cluster, nested_map
from lingvo_gpipe.layers import embedding
from lingvo_gpipe.train import optimizers
from tasks.mt import transformer, translation_task
from tools.benchmarks import peer_process
from tools.benchmarks.translation_training import torch_weights

_LEARNING_RATE = 1e-4
_LABEL_SMOOTHING = 0.1
_PROGRAM = os.path.join(os.path.dirname(__file__), 'torch_program.py')


@dataclasses.dataclass(frozen=True)
class Sizes:
  """Of model and mini-batch.

  Attributes:
    num_layers: of the encoder, and as many of the decoder.
    dim: width of the stream.
    hidden_dim: of feed-forward networks.
    num_heads: of attention.
    vocab_size: ids.
    batch: pairs of a mini-batch.
    time: places of a row, on each side; a sentence takes half of them or more.
    keep_prob: of all dropouts.
  """

  num_layers: int
  dim: int
  hidden_dim: int
  num_heads: int
  vocab_size: int
  batch: int
  time: int
  keep_prob: float = 1.0


def Batch(sizes: Sizes) -> dict[str, np.ndarray]:
  """A made-up mini-batch, as transformer_cells.py describes it."""
  random = np.random.default_rng(7)
  shape = (sizes.batch, sizes.time)

  def _Ids():
    return random.integers(0, sizes.vocab_size, shape, np.int32)

  def _Paddings():
    lengths = random.integers(sizes.time // 2, sizes.time + 1, sizes.batch)
    return (np.arange(sizes.time) >= lengths[:, None]).astype(np.float32)

  return {
    'inputs': _Ids(),
    'source_paddings': _Paddings(),
    'target_ids': _Ids(),
    'labels': _Ids(),
    'target_paddings': _Paddings(),
  }


def Tokens(batch: dict[str, np.ndarray]) -> int:
  """Of a mini-batch's targets, without padding."""
  return int((1.0 - batch['target_paddings']).sum())


class Ours:
  """Our model on devices."""

  def __init__(
    self,
    sizes: Sizes,
    batch: dict[str, np.ndarray],
    devices: list[str],
    *,
    num_micro_batches: int,
    rematerialize: str,
  ):
    """Builds it.

    Args:
      sizes: of it.
      batch: of Batch.
      devices: one for each partition.
      num_micro_batches: M.
      rematerialize: the policy, of gpipe.GPipe.
    """
    self._batch = nested_map.NestedMap(batch).Transform(tf.constant)
    network = transformer.Transformer(
      num_layers=sizes.num_layers,
      hidden_dim=sizes.hidden_dim,
      num_heads=sizes.num_heads,
      vocab_size=sizes.vocab_size,
      dim=sizes.dim,
      head_dim=None,
      tied='all',
      label_smoothing=_LABEL_SMOOTHING,
      logits_abs_max=None,
      keep_prob=sizes.keep_prob,
      attention_keep_prob=sizes.keep_prob,
      hidden_keep_prob=sizes.keep_prob,
      scale_feed_forward=False,
    )
    p = translation_task.Params(
      network,
      num_partitions=len(devices),
      num_micro_batches=num_micro_batches,
    )
    p.net.rematerialize = rematerialize
    p.train.learner.Set(optimizer=_Adam(), learning_rate=_LEARNING_RATE)
    self._task = p.Instantiate()
    spec = tf.nest.map_structure(
      lambda x: tf.TensorSpec(x.shape, x.dtype), self._batch
    )
    self._task.Plan(spec, devices)
    self._task.InstantiateVariables()
    self._step = tf.function(
      cluster.ReturnToClient(self._task.TrainStep), autograph=False
    )
    self._count = 0

  def Weights(self) -> torch_weights.Arrays:
    """The weights, by PyTorch's names."""
    return torch_weights.Named(
      {
        cell.params.name: cell.vars.Transform(lambda v: v.numpy())
        for cell in self._task.net.cells
      }
    )

  def Assign(self, other: Ours) -> None:
    """Takes over the weights of another one."""
    ours, theirs = self._task.net.cells, other._task.net.cells
    for cell, its in zip(ours, theirs, strict=True):
      for variable, value in zip(
        cell.vars.Flatten(), its.vars.Flatten(), strict=True
      ):
        variable.assign(value.numpy())

  def Step(self) -> float:
    """Trains a step and returns the loss before it."""
    metrics = self._step(self._batch, tf.constant(self._count, tf.int64))
    self._count += 1
    return float(metrics.loss)


def _Adam() -> Any:
  return optimizers.Adam.Params().Set(beta2=0.98, epsilon=1e-9)


def Torch(
  python: str,
  sizes: Sizes,
  batch: dict[str, np.ndarray],
  weights: torch_weights.Arrays,
  *,
  folder: str,
  core: int,
) -> peer_process.PeerProcesses:
  """Starts the same model of PyTorch.

  Args:
    python: interpreter that has PyTorch.
    sizes: of the model.
    batch: of Batch.
    weights: of Ours.Weights.
    folder: for what it reads.
    core: that it runs on.

  Returns:
    A process; the names of its steps mean nothing.
  """
  waves = embedding.SinusoidalPositions(tf.range(sizes.time), sizes.dim).numpy()
  arrays = os.path.join(folder, 'arrays.npz')
  np.savez(
    arrays,
    **weights,
    **{f'batch/{name}': x for name, x in batch.items()},
    **{f'waves/{side}': waves for side in ('source', 'target')},
  )
  adam = _Adam()
  setup = {
    'core': core,
    'arrays': arrays,
    'num_layers': sizes.num_layers,
    'dim': sizes.dim,
    'hidden_dim': sizes.hidden_dim,
    'num_heads': sizes.num_heads,
    'dropout': 1.0 - sizes.keep_prob,
    'label_smoothing': _LABEL_SMOOTHING,
    'learning_rate': _LEARNING_RATE,
    'beta1': adam.beta1,
    'beta2': adam.beta2,
    'epsilon': adam.epsilon,
  }
  return peer_process.PeerProcesses(python, _PROGRAM, [setup])
