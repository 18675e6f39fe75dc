"""A cell of AmoebaNet, whatever its genotype says."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map
from lingvo_gpipe.layers import dropout, norm
from tasks.image import amoebanet_ops, genotypes

WeightInit = base_layer.WeightInit


def KernelInit() -> hyperparams.Params:
  """How AmoebaNet's convolutions start: variance 2 / fan_out."""
  return WeightInit.VarianceScaling(2.0, 'fan_out', 'truncated_normal')


def OutputDim(genotype: str, reduction: bool, num_filters: int) -> int:
  """Channels of a cell's output."""
  cell = genotypes.Get(genotype).Cell(reduction)
  return len(cell.concat) * num_filters


class AmoebaNetCell(base_layer.BaseLayer):
  """(inputs, skip) -> (outputs, inputs): what a pair of cells hands on.

  Every cell reads the outputs of the two cells before it, so a pair of tensors
  crosses each border of a pipeline.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.params_init = KernelInit()
    p.Define('genotype', 'amoebanet_d', 'A key of genotypes.GENOTYPES.')
    p.Define('reduction', False, 'Whether it halves the image.')
    p.Define('input_dim', 0, 'Channels of the inputs.')
    p.Define(
      'skip_dim',
      None,
      'Channels of the skip. None: there is no skip (None is passed), and the '
      'inputs take its place.',
    )
    p.Define(
      'skip_stride',
      1,
      'How many times larger the image of the skip is, 1 or 2.',
    )
    p.Define('num_filters', 0, 'F, channels of each state.')
    p.Define(
      'drop_path',
      dropout.DropPath.Params(),
      'Drops operations of single examples; all but "none".',
    )
    p.Define('norm', norm.BatchNorm.Params(), 'Decay and epsilon.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.skip_stride not in (1, 2):
      raise ValueError(
        f'{self.path}: skip_stride={p.skip_stride} is not 1 or 2'
      )
    if p.num_filters < 4:
      raise ValueError(
        f'{self.path}: num_filters={p.num_filters} must be 4 or more: '
        'bottlenecks have a quarter of it'
      )
    self._genotype = genotypes.Get(p.genotype).Cell(p.reduction)
    self.CreateChild('match_inputs', self._ConvNorm(p.input_dim))
    self._CreateSkipMatch()

    # An unmatched skip, the inputs, keeps its own number of channels.
    dims = [p.num_filters, p.input_dim if p.skip_dim is None else p.num_filters]
    for i, block in enumerate(self._genotype.blocks):
      for side, (state, operation) in zip(
        ('left', 'right'), block, strict=True
      ):
        self._CreateBranch(f'block_{i}_{side}', state, operation, dims[state])
      dims.append(p.num_filters)

  def _ConvNorm(self, input_dim: int) -> hyperparams.InstantiableParams:
    p = self.params
    return amoebanet_ops.ConvNorm(
      p.norm, p.params_init, input_dim, p.num_filters
    )

  def _CreateSkipMatch(self) -> None:
    p = self.params
    if p.skip_dim is None:
      return
    if p.skip_stride == 2:
      self.CreateChild(
        'match_skip',
        amoebanet_ops.FactorizedReduction.Params().Set(
          input_dim=p.skip_dim,
          output_dim=p.num_filters,
          norm=p.norm.Copy(),
          params_init=p.params_init,
        ),
      )
    elif p.skip_dim != p.num_filters:
      self.CreateChild('match_skip', self._ConvNorm(p.skip_dim))

  def _CreateBranch(
    self, name: str, state: int, operation: str, input_dim: int
  ) -> None:
    p = self.params
    layer = amoebanet_ops.Operation(
      operation,
      input_dim,
      p.num_filters,
      stride=2 if p.reduction and state < 2 else 1,
      norm_params=p.norm,
      init=p.params_init,
    )
    if layer is not None:
      self.CreateChild(name, layer)
    if operation != genotypes.NONE and p.drop_path.keep_prob < 1.0:
      self.CreateChild(f'{name}_drop', p.drop_path)

  def FProp(
    self,
    theta: nested_map.NestedMap,
    inputs: tuple[tf.Tensor, tf.Tensor | None],
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Applies the cell.

    Args:
      theta: of the layers.
      inputs: (inputs, skip): [batch, h, w, input_dim] and [batch, skip_stride *
        h (or one less, if h is odd), ..., skip_dim] or None.

    Returns:
      (outputs, inputs): [batch, h, w, OutputDim(...)], with h and w halved and
      rounded up by a reduction, and the inputs as they came.
    """
    inputs, skip = inputs
    if (skip is None) != (self.params.skip_dim is None):
      raise ValueError(
        f'{self.path}: skip_dim={self.params.skip_dim}, but the skip is {skip}'
      )
    states = [
      self.match_inputs.FProp(theta.match_inputs, inputs),
      self._Child(theta, 'match_skip', inputs if skip is None else skip),
    ]
    for i, block in enumerate(self._genotype.blocks):
      (left, unused_op), (right, unused_op) = block
      states.append(
        self._Branch(theta, f'block_{i}_left', states[left])
        + self._Branch(theta, f'block_{i}_right', states[right])
      )
    outputs = tf.concat([states[i] for i in self._genotype.concat], axis=-1)
    return outputs, inputs

  def _Branch(
    self, theta: nested_map.NestedMap, name: str, state: tf.Tensor
  ) -> tf.Tensor:
    outputs = self._Child(theta, name, state)
    return self._Child(theta, f'{name}_drop', outputs)

  def _Child(
    self, theta: nested_map.NestedMap, name: str, inputs: tf.Tensor
  ) -> tf.Tensor:
    """A child's output, the inputs where there is no child of this name."""
    child = self.children.get(name)
    return inputs if child is None else child.FProp(theta[name], inputs)
