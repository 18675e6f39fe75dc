"""What a layer asks and says in a forward pass, beside computing its outputs.

Is it training or evaluation? Which random numbers are drawn? Statistics,
auxiliary losses and metrics are reported, skip connections begin and end,
weights of other cells are used. All of it goes through the context of the pass
(fprop_context.py), so that FProp stays a function of theta and its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lingvo_gpipe import fprop_context, metrics, nested_map, weights

NestedMap = nested_map.NestedMap

# Seeds of one step: micro-batch i of step t has t * 2**20 + i, an exact int64.
_MAX_MICRO_BATCHES = 2**20


class LayerInContext:
  """The part of BaseLayer that is about a forward pass."""

  @property
  def path(self) -> str:
    """Names from the root to this layer, such as 'net/stem/conv'."""
    raise NotImplementedError

  @property
  def random_seed(self) -> int:
    """Of the run, unless a layer on the way up has its own."""
    raise NotImplementedError

  @property
  def do_eval(self) -> bool:
    """Whether the current forward pass is one of evaluation."""
    return fprop_context.Current().do_eval

  @property
  def example_weights(self) -> tf.Tensor | None:
    """float32 [micro_batch]: 1 for examples, 0 for padding; None: no padding.

    Where mini-batches may be padded (GPipe's pad_batches), what a layer sums
    over examples (statistics, auxiliary losses, metrics) goes by these weights.
    """
    return fprop_context.Current().example_weights

  def StatelessSeed(self, name: str = '') -> tf.Tensor:
    """A seed for tf.random.stateless_*, new for each micro-batch.

    It is a function of the run's seed, the layer's path, `name`, the step and
    the micro-batch. A re-materialized forward pass and any cut into partitions
    therefore draw the same numbers. All of it is int64: nothing collides before
    step 2**43.

    Args:
      name: tells apart several draws of one layer.

    Returns:
      int64 [2].
    """
    context = fprop_context.Current()
    step = tf.cast(context.global_step, tf.int64)
    micro_batch = tf.cast(context.micro_batch, tf.int64)
    return tf.stack(
      [
        tf.constant(
          weights.Hash64('draw', self.random_seed, self.path, name), tf.int64
        ),
        step * _MAX_MICRO_BATCHES + micro_batch,
      ]
    )

  def ReportStatistics(self, statistics: NestedMap) -> None:
    """Reports sums over the micro-batch, in training only.

    GPipe adds them up over the micro-batches of the mini-batch, counting each
    forward pass once and no re-materialization, and hands the result to
    ApplyStatistics.

    Args:
      statistics: tensors that may be summed.
    """
    context = fprop_context.Current()
    if not context.do_eval:
      context.AddStatistics(
        self.path, tf.nest.map_structure(tf.stop_gradient, statistics)
      )

  def ApplyStatistics(self, statistics: NestedMap) -> None:
    """Updates state from the sums over a whole mini-batch.

    Args:
      statistics: what this layer reported, summed.
    """
    raise NotImplementedError(
      f'{self.path} reports statistics, so {type(self).__name__} must define '
      'ApplyStatistics'
    )

  def AddAuxLoss(self, name: str, total: tf.Tensor) -> None:
    """Adds an auxiliary loss to the objective, in training only.

    Args:
      name: in metrics and summaries.
      total: scalar, the sum over the examples (or tokens) of the micro-batch,
        already multiplied by its coefficient. The objective divides it by the
        weight of the main loss: (sum of losses + sum of totals) / sum of
        weights.
    """
    context = fprop_context.Current()
    if not context.do_eval:
      context.AddAuxLoss(f'{self.path}/{name}', total)

  def AddMetric(self, name: str, total: tf.Tensor, weight: Any = 1.0) -> None:
    """Reports a metric or a scalar for summaries, in training only.

    GPipe adds totals and weights up over the micro-batches; what is shown is
    total / weight. With weight 1 that is the mean over micro-batches.

    Args:
      name: in metrics and summaries, after the layer's path.
      total: scalar, a sum over the micro-batch's examples, tokens, ...
      weight: scalar, how many those are.
    """
    context = fprop_context.Current()
    if not context.do_eval:
      total = tf.stop_gradient(tf.convert_to_tensor(total))
      weight = tf.stop_gradient(tf.cast(weight, total.dtype))
      context.AddMetric(
        f'{self.path}/{name}', metrics.WeightedSum(total, weight)
      )

  # Used as a cell: what it shares with cells that are not its neighbours.

  def Stashes(self) -> tuple[str, ...]:
    """Names of the skip connections that begin in this cell."""
    return ()

  def Pops(self) -> tuple[str, ...]:
    """Names of the skip connections that end in this cell."""
    return ()

  def Stash(self, name: str, value: Any) -> None:
    """Begins a skip connection: hands a nest to the cell that pops `name`.

    It goes straight to that cell's device, past the partitions in between.

    Args:
      name: one of Stashes().
      value: a tensor, or a nest of tensors and None.

    Raises:
      ValueError: for a name that was not declared, or is stashed already.
    """
    self._CheckDeclared(name, 'stashes', self.Stashes)
    context = fprop_context.Current()
    if name in context.stashed:
      raise ValueError(f'{self.path}: {name!r} is stashed already')
    context.stashed[name] = value

  def Pop(self, name: str) -> Any:
    """Ends a skip connection: what another cell stashed as `name`.

    Args:
      name: one of Pops().

    Returns:
      The nest.

    Raises:
      ValueError: for a name that was not declared, or is not stashed.
    """
    self._CheckDeclared(name, 'pops', self.Pops)
    context = fprop_context.Current()
    if name not in context.stashed:
      raise ValueError(f'{self.path}: nothing is stashed as {name!r}')
    return context.stashed.pop(name)

  def SharedWeights(self) -> dict[str, str]:
    """Weights that other cells may use: {name: path in this cell's theta}."""
    return {}

  def UsedWeights(self) -> tuple[str, ...]:
    """Names of other cells' weights that this cell uses."""
    return ()

  def SharedWeight(self, name: str) -> tf.Tensor:
    """The value of another cell's weight.

    There is one variable, and its gradient is the sum of all uses.

    Args:
      name: one of UsedWeights().

    Returns:
      The tensor.

    Raises:
      ValueError: for a name that was not declared, or that no cell shares.
    """
    self._CheckDeclared(name, 'uses the weight', self.UsedWeights)
    shared = fprop_context.Current().shared_weights
    if name not in shared:
      raise ValueError(f'{self.path}: no cell shares a weight {name!r}')
    return shared[name]

  def _CheckDeclared(
    self, name: str, does: str, declare: Callable[[], tuple[str, ...]]
  ) -> None:
    if name not in declare():
      raise ValueError(
        f'{self.path} {does} {name!r}, which its method {declare.__name__}() '
        f'does not declare; it declares {list(declare())}'
      )
