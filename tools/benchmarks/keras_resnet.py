"""The ResNet of tasks/image/resnet.py in plain Keras, to be compared with it.

Convolutions and batch norms are called as ours: layer `stem_conv` is child
`conv` of cell `stem`, in a convolution and a norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer

_EPSILON = 1e-5
_GROWTH = 4


def Model(
  *, num_blocks: Sequence[int], image_size: int, num_classes: int
) -> tf.keras.Model:
  """ResNet v1.5 from images to logits (He et al., arXiv 1512.03385).

  Args:
    num_blocks: of each group, (3, 4, 6, 3) for ResNet-50.
    image_size: height and width.
    num_classes: of the classifier.

  Returns:
    The model, float32.
  """
  layers = tf.keras.layers
  images = tf.keras.Input([image_size, image_size, 3])
  x = layers.ReLU()(_ConvNorm(images, 'stem_conv', 64, 7, 2))
  # Padding of 0 is as good as any after a ReLU.
  x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
  for group, count in enumerate(num_blocks):
    for block in range(count):
      x = _Block(
        x,
        f'group_{group}_block_{block:02d}',
        64 * 2**group,
        stride=2 if group and not block else 1,
        project=not block,
      )
  x = layers.GlobalAveragePooling2D()(x)
  return tf.keras.Model(images, layers.Dense(num_classes, name='dense')(x))


def _Block(x: Any, name: str, filters: int, *, stride: int, project: bool):
  layers = tf.keras.layers
  shortcut = x
  if project:
    shortcut = _ConvNorm(x, f'{name}_project', _GROWTH * filters, 1, stride)
  x = layers.ReLU()(_ConvNorm(x, f'{name}_reduce', filters, 1, 1))
  x = layers.ReLU()(_ConvNorm(x, f'{name}_conv', filters, 3, stride))
  x = _ConvNorm(x, f'{name}_expand', _GROWTH * filters, 1, 1)
  return layers.ReLU()(layers.Add()([x, shortcut]))


def _ConvNorm(x: Any, name: str, filters: int, size: int, stride: int):
  layers = tf.keras.layers
  if size > 1:
    x = layers.ZeroPadding2D(size // 2)(x)
  x = layers.Conv2D(
    filters, size, stride, use_bias=False, name=f'{name}_kernel'
  )(x)
  return layers.BatchNormalization(
    momentum=0.9, epsilon=_EPSILON, name=f'{name}_norm'
  )(x)


def CopyWeights(
  cells: Sequence[base_layer.BaseLayer], model: tf.keras.Model
) -> None:
  """Gives the model the weights of cells of resnet.ResNetCells.

  Args:
    cells: with variables.
    model: of Model, with as many blocks.
  """
  for cell in cells[:-1]:
    for child, theta in cell.vars.items():
      name = f'{cell.params.name}_{child}'
      norm = theta.norm
      model.get_layer(f'{name}_kernel').set_weights([theta.conv.w.numpy()])
      model.get_layer(f'{name}_norm').set_weights(
        [
          v.numpy()
          for v in (
            norm.gamma,
            norm.beta,
            norm.moving_mean,
            norm.moving_variance,
          )
        ]
      )
  dense = cells[-1].vars.dense
  model.get_layer('dense').set_weights([dense.w.numpy(), dense.b.numpy()])
