"""AutoAugment (Cubuk et al., arXiv 1805.09501) and RandAugment (1909.13719)."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import hyperparams
from tasks.image import auto_augment_policies, image_ops, image_transform

_NAMES = list(image_ops.OPERATIONS)
_IS_SIGNED = [name in auto_augment_policies.SIGNED for name in _NAMES]

# Of RandAugment's paper; doing nothing is one, too.
_RAND_AUGMENT = [
  name for name in _NAMES if name not in ('Invert', 'SolarizeAdd')
]


class AutoAugment(image_transform.ImageTransform):
  """Applies one of 25 pairs of operations, each with its probability.

  'imagenet' and 'cifar10' are the policies of the paper's appendix,
  'imagenet_v0' is the other one that its authors published code with.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'policy', 'imagenet', 'Of auto_augment_policies: imagenet, cifar10, ...'
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    policies = auto_augment_policies.POLICIES
    if self.params.policy not in policies:
      raise ValueError(
        f'AutoAugment: policy={self.params.policy!r} is none of '
        f'{", ".join(policies)}'
      )
    self._policy = policies[self.params.policy]

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    ranges, sub_policies = self._policy
    # [25, 2] each.
    indices = tf.constant(
      [[_NAMES.index(s[0]) for s in x] for x in sub_policies]
    )
    chances = tf.constant([[s[1] for s in x] for x in sub_policies])
    values = tf.constant(
      [[ranges.Value(s[0], s[2]) for s in x] for x in sub_policies]
    )
    chosen, first, second, sign1, sign2 = image_transform.Uniform(
      seed,
      (0.0, len(sub_policies)),
      *[(0.0, 1.0)] * 2,
      *[(-1.0, 1.0)] * 2,
    )
    chosen = tf.cast(chosen, tf.int32)
    output = _ToUint8(image)
    for step, (chance, sign) in enumerate(((first, sign1), (second, sign2))):
      output = tf.cond(
        chance < chances[chosen, step],
        lambda x=output, i=step, s=sign: _ApplySigned(
          indices[chosen, i], x, values[chosen, i], s
        ),
        lambda x=output: x,
      )
    return tf.cast(output, tf.float32)


class RandAugment(image_transform.ImageTransform):
  """Applies some operations, each drawn from 14 with the same chance.

  Magnitudes mean what they do in the code that the authors published, where
  Posterize and Solarize are strongest at 0. One of the 14 is to do nothing.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('num_ops', 2, 'Operations, one after the other.')
    p.Define('magnitude', 5.0, 'Of all, from 0 to 10.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    top = auto_augment_policies.CODE_RANGES.top
    if not 0 <= self.params.magnitude <= top:
      raise ValueError(
        f'RandAugment: magnitude={self.params.magnitude} must be from 0 to '
        f'{top}'
      )

  def Apply(self, image: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    p, ranges = self.params, auto_augment_policies.CODE_RANGES
    indices = tf.constant([_NAMES.index(name) for name in _RAND_AUGMENT])
    values = tf.constant(
      [ranges.Value(name, p.magnitude) for name in _RAND_AUGMENT]
    )
    draws = image_transform.Uniform(
      seed, *[(0.0, len(_RAND_AUGMENT) + 1), (-1.0, 1.0)] * p.num_ops
    )
    output = _ToUint8(image)
    for draw, sign in zip(draws[::2], draws[1::2], strict=True):
      chosen = tf.cast(draw, tf.int32)
      output = tf.cond(
        chosen < len(_RAND_AUGMENT),
        lambda x=output, i=chosen, s=sign: _ApplySigned(
          indices[i], x, values[i], s
        ),
        lambda x=output: x,
      )
    return tf.cast(output, tf.float32)


def _ApplySigned(
  index: tf.Tensor, image: tf.Tensor, value: tf.Tensor, sign: tf.Tensor
) -> tf.Tensor:
  negate = tf.gather(_IS_SIGNED, index) & (sign < 0.0)
  return image_ops.Apply(index, image, tf.where(negate, -value, value))


def _ToUint8(image: tf.Tensor) -> tf.Tensor:
  return tf.cast(tf.clip_by_value(tf.round(image), 0.0, 255.0), tf.uint8)
