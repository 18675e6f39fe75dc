"""The policies that AutoAugment found, as tables.

A policy has 25 sub-policies of two operations each: (operation, probability,
magnitude). What a magnitude means is in the policy's ranges.
"""

from __future__ import annotations

from typing import NamedTuple

Step = tuple[str, float, int]


class Ranges(NamedTuple):
  """What magnitudes mean.

  Attributes:
    top: the magnitude that gives the last value of each range; 0 gives the
      first, and between them values are evenly spaced.
    values: {operation: (first, last)}. Operations that are not there have no
      magnitude.
  """

  top: float
  values: dict[str, tuple[float, float]]

  def Value(self, operation: str, magnitude: float) -> float:
    """The value of an operation, before a random sign where it has one."""
    first, last = self.values.get(operation, (0.0, 0.0))
    return first + (last - first) * magnitude / self.top


class Policy(NamedTuple):
  """Sub-policies, of which one is drawn for each image.

  Attributes:
    ranges: what the magnitudes mean.
    sub_policies: pairs of steps.
  """

  ranges: Ranges
  sub_policies: tuple[tuple[Step, Step], ...]


# Operations that go either way, by a random sign.
SIGNED = ('ShearX', 'ShearY', 'TranslateX', 'TranslateY', 'Rotate')

_GEOMETRIC = {
  'ShearX': (0.0, 0.3),
  'ShearY': (0.0, 0.3),
  # 150 pixels of the 331 that images had in the search.
  'TranslateX': (0.0, 150 / 331),
  'TranslateY': (0.0, 150 / 331),
  'Rotate': (0.0, 30.0),
}
_BLENDS = {
  'Color': (0.1, 1.9),
  'Contrast': (0.1, 1.9),
  'Brightness': (0.1, 1.9),
  'Sharpness': (0.1, 1.9),
}

# Table 6 of the paper: ten values of each range, from weak to strong.
PAPER_RANGES = Ranges(
  9,
  {
    **_GEOMETRIC,
    **_BLENDS,
    'Solarize': (256.0, 0.0),
    'Posterize': (8.0, 4.0),
  },
)

# Those of the code that the authors published for ImageNet.
CODE_RANGES = Ranges(
  10,
  {
    **_GEOMETRIC,
    **_BLENDS,
    'Solarize': (0.0, 256.0),
    'SolarizeAdd': (0.0, 110.0),
    'Posterize': (0.0, 4.0),
  },
)

# The tables name operations without magnitude with one all the same; it is 0
# here.
IMAGENET = Policy(
  PAPER_RANGES,
  (
    (('Posterize', 0.4, 8), ('Rotate', 0.6, 9)),
    (('Solarize', 0.6, 5), ('AutoContrast', 0.6, 0)),
    (('Equalize', 0.8, 0), ('Equalize', 0.6, 0)),
    (('Posterize', 0.6, 7), ('Posterize', 0.6, 6)),
    (('Equalize', 0.4, 0), ('Solarize', 0.2, 4)),
    (('Equalize', 0.4, 0), ('Rotate', 0.8, 8)),
    (('Solarize', 0.6, 3), ('Equalize', 0.6, 0)),
    (('Posterize', 0.8, 5), ('Equalize', 1.0, 0)),
    (('Rotate', 0.2, 3), ('Solarize', 0.6, 8)),
    (('Equalize', 0.6, 0), ('Posterize', 0.4, 6)),
    (('Rotate', 0.8, 8), ('Color', 0.4, 0)),
    (('Rotate', 0.4, 9), ('Equalize', 0.6, 0)),
    (('Equalize', 0.0, 0), ('Equalize', 0.8, 0)),
    (('Invert', 0.6, 0), ('Equalize', 1.0, 0)),
    (('Color', 0.6, 4), ('Contrast', 1.0, 8)),
    (('Rotate', 0.8, 8), ('Color', 1.0, 2)),
    (('Color', 0.8, 8), ('Solarize', 0.8, 7)),
    (('Sharpness', 0.4, 7), ('Invert', 0.6, 0)),
    (('ShearX', 0.6, 5), ('Equalize', 1.0, 0)),
    (('Color', 0.4, 0), ('Equalize', 0.6, 0)),
    (('Equalize', 0.4, 0), ('Solarize', 0.2, 4)),
    (('Solarize', 0.6, 5), ('AutoContrast', 0.6, 0)),
    (('Invert', 0.6, 0), ('Equalize', 1.0, 0)),
    (('Color', 0.6, 4), ('Contrast', 1.0, 8)),
    (('Equalize', 0.8, 0), ('Equalize', 0.6, 0)),
  ),
)

IMAGENET_V0 = Policy(
  CODE_RANGES,
  (
    (('Equalize', 0.8, 0), ('ShearY', 0.8, 4)),
    (('Color', 0.4, 9), ('Equalize', 0.6, 0)),
    (('Color', 0.4, 1), ('Rotate', 0.6, 8)),
    (('Solarize', 0.8, 3), ('Equalize', 0.4, 0)),
    (('Solarize', 0.4, 2), ('Solarize', 0.6, 2)),
    (('Color', 0.2, 0), ('Equalize', 0.8, 0)),
    (('Equalize', 0.4, 0), ('SolarizeAdd', 0.8, 3)),
    (('ShearX', 0.2, 9), ('Rotate', 0.6, 8)),
    (('Color', 0.6, 1), ('Equalize', 1.0, 0)),
    (('Invert', 0.4, 0), ('Rotate', 0.6, 0)),
    (('Equalize', 1.0, 0), ('ShearY', 0.6, 3)),
    (('Color', 0.4, 7), ('Equalize', 0.6, 0)),
    (('Posterize', 0.4, 6), ('AutoContrast', 0.4, 0)),
    (('Solarize', 0.6, 8), ('Color', 0.6, 9)),
    (('Solarize', 0.2, 4), ('Rotate', 0.8, 9)),
    (('Rotate', 1.0, 7), ('TranslateY', 0.8, 9)),
    (('ShearX', 0.0, 0), ('Solarize', 0.8, 4)),
    (('ShearY', 0.8, 0), ('Color', 0.6, 4)),
    (('Color', 1.0, 0), ('Rotate', 0.6, 2)),
    (('Equalize', 0.8, 0), ('Equalize', 0.0, 0)),
    (('Equalize', 1.0, 0), ('AutoContrast', 0.6, 0)),
    (('ShearY', 0.4, 7), ('SolarizeAdd', 0.6, 7)),
    (('Posterize', 0.8, 2), ('Solarize', 0.6, 10)),
    (('Solarize', 0.6, 8), ('Equalize', 0.6, 0)),
    (('Color', 0.8, 6), ('Rotate', 0.4, 5)),
  ),
)

CIFAR10 = Policy(
  PAPER_RANGES,
  (
    (('Invert', 0.1, 0), ('Contrast', 0.2, 6)),
    (('Rotate', 0.7, 2), ('TranslateX', 0.3, 9)),
    (('Sharpness', 0.8, 1), ('Sharpness', 0.9, 3)),
    (('ShearY', 0.5, 8), ('TranslateY', 0.7, 9)),
    (('AutoContrast', 0.5, 0), ('Equalize', 0.9, 0)),
    (('ShearY', 0.2, 7), ('Posterize', 0.3, 7)),
    (('Color', 0.4, 3), ('Brightness', 0.6, 7)),
    (('Sharpness', 0.3, 9), ('Brightness', 0.7, 9)),
    (('Equalize', 0.6, 0), ('Equalize', 0.5, 0)),
    (('Contrast', 0.6, 7), ('Sharpness', 0.6, 5)),
    (('Color', 0.7, 7), ('TranslateX', 0.5, 8)),
    (('Equalize', 0.3, 0), ('AutoContrast', 0.4, 0)),
    (('TranslateY', 0.4, 3), ('Sharpness', 0.2, 6)),
    (('Brightness', 0.9, 6), ('Color', 0.2, 8)),
    (('Solarize', 0.5, 2), ('Invert', 0.0, 0)),
    (('Equalize', 0.2, 0), ('AutoContrast', 0.6, 0)),
    (('Equalize', 0.2, 0), ('Equalize', 0.6, 0)),
    (('Color', 0.9, 9), ('Equalize', 0.6, 0)),
    (('AutoContrast', 0.8, 0), ('Solarize', 0.2, 8)),
    (('Brightness', 0.1, 3), ('Color', 0.7, 0)),
    (('Solarize', 0.4, 5), ('AutoContrast', 0.9, 0)),
    (('TranslateY', 0.9, 9), ('TranslateY', 0.7, 9)),
    (('AutoContrast', 0.9, 0), ('Solarize', 0.8, 3)),
    (('Equalize', 0.8, 0), ('Invert', 0.1, 0)),
    (('TranslateY', 0.7, 9), ('AutoContrast', 0.9, 0)),
  ),
)

POLICIES = {
  'imagenet': IMAGENET,
  'imagenet_v0': IMAGENET_V0,
  'cifar10': CIFAR10,
}
