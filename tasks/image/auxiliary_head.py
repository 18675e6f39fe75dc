"""An auxiliary classifier in the middle of a network, for training only."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, metrics, nested_map
from lingvo_gpipe.layers import dense, norm, pooling
from tasks.image import amoebanet_cell, amoebanet_ops, softmax_loss

_POOL_SIZE, _POOL_STRIDE = 5, 3

# Channels of its two convolutions.
_PROJECTED_DIM, _FEATURES_DIM = 51, 307


class AuxiliaryHead(base_layer.BaseLayer):
  """A cell that lets its inputs pass and adds a loss of its own.

  ReLU, 5x5 average pooling with stride 3, 1x1 convolution to 51 channels, batch
  norm, ReLU, a convolution over the whole image to 307 features, batch norm,
  ReLU, dense. Its share of the objective is `weight` times its cross entropy.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('input_dim', 0, 'Channels of the image.')
    p.Define('image_size', 0, 'Height and width of the image.')
    p.Define('num_classes', 0, 'Number of classes.')
    p.Define('weight', 0.4, 'Of its loss, against 1 of the main loss.')
    p.Define('label_smoothing', 0.0, 'See softmax_loss.CrossEntropy.')
    p.Define('mixup', False, 'Whether images are mixtures of two.')
    p.Define('norm', norm.BatchNorm.Params(), 'Decay and epsilon.')
    p.params_init = amoebanet_cell.KernelInit()
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.image_size < _POOL_SIZE:
      raise ValueError(
        f'{self.path}: images of {p.image_size} x {p.image_size} are too small '
        f'for an auxiliary head, which pools {_POOL_SIZE} x {_POOL_SIZE}; set '
        'the weight of the auxiliary loss to 0'
      )
    window = (_POOL_SIZE, _POOL_SIZE)
    self.CreateChild(
      'pool',
      pooling.Pooling2D.Params().Set(
        pooling_type='AVG',
        window_shape=window,
        window_stride=(_POOL_STRIDE, _POOL_STRIDE),
        padding='VALID',
      ),
    )
    size = (p.image_size - _POOL_SIZE) // _POOL_STRIDE + 1
    self.CreateChild('project', self._Conv(p.input_dim, _PROJECTED_DIM, 1))
    self.CreateChild(
      'features', self._Conv(_PROJECTED_DIM, _FEATURES_DIM, size)
    )
    self.CreateChild(
      'dense',
      dense.Dense.Params().Set(
        input_dim=_FEATURES_DIM, output_dim=p.num_classes
      ),
    )

  def _Conv(self, input_dim: int, output_dim: int, size: int):
    return amoebanet_ops.ConvNorm(
      self.params.norm,
      self.params.params_init,
      input_dim,
      output_dim,
      size=(size, size),
      relu=False,
      padding='VALID',
    ).Set(activation='relu')

  @property
  def BATCH_FIELDS(self) -> tuple[str, ...]:
    """Labels, weights and, with mixup, the other labels."""
    return softmax_loss.BatchFields(self.params.mixup)

  def FProp(
    self, theta: nested_map.NestedMap, inputs: Any, batch: nested_map.NestedMap
  ) -> Any:
    """Adds the auxiliary loss in training.

    Args:
      theta: of the layers.
      inputs: [batch, image_size, image_size, input_dim], or a pair (that,
        skip).
      batch: the BATCH_FIELDS, [batch] each.

    Returns:
      The inputs.
    """
    p = self.params
    if self.do_eval:
      return inputs
    image = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
    x = self.pool.FProp(theta.pool, tf.nn.relu(image))
    x = self.project.FProp(theta.project, x)
    x = self.features.FProp(theta.features, x)  # [batch, 1, 1, 307]
    logits = self.dense.FProp(theta.dense, tf.squeeze(x, [1, 2]))
    loss = softmax_loss.BatchLoss(logits, batch, p.label_smoothing)
    total = metrics.Weighted(loss, batch.weights).total
    self.AddAuxLoss('loss', p.weight * total)
    return inputs
