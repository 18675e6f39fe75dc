"""Which emoji are near-duplicates of each other: pure NumPy.

A picture that is almost another one must not be on the other side of a split.
Emoji are of one family, directly or through others,

  by their code    where they differ in gender, skin tone or hair only, or show
                   a person with the same thing: the cook, the woman cook, the
                   frying pan
  by their look    where little is left once each has lost its mean colour: the
                   hearts, the faces of clocks, flags of the same pattern
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Code points: man, woman, person; the signs of both genders; skin tones.
_ADULTS = {'1f468', '1f469', '1f9d1'}
_GENDERS = {'2640', '2642'}
_SKIN_TONES = {'1f3fb', '1f3fc', '1f3fd', '1f3fe', '1f3ff'}
_JOINER = '-200d-'

# Looks are compared at so many pixels each way, and are the same below this
# root mean square over pixels and channels in [0, 1].
_LOOK_SIZE = 12
_SAME_LOOK = 0.06


def Base(code: str) -> str:
  """The part of an emoji's code that it shares with its variants.

  Args:
    code: code points in lower-case hexadecimal, '-' between them, without
      variation selectors, such as '1f469-1f3fb-200d-1f373', a woman cook.

  Returns:
    The first of the joined parts that is neither an adult nor a gender, or else
    the first of all; without skin tones. Such as '1f373', the frying pan.
  """
  parts = [
    '-'.join(point for point in part.split('-') if point not in _SKIN_TONES)
    for part in code.split(_JOINER)
  ]
  things = [part for part in parts if part not in _ADULTS | _GENDERS]
  return (things or parts)[0]


def Families(codes: Sequence[str], pictures: np.ndarray) -> list[str]:
  """Finds the families.

  Args:
    codes: of the emoji, see Base.
    pictures: uint8 [n, size, size, 4], red, green, blue and opacity; 12 divides
      the size.

  Returns:
    The family of each emoji, named after the least of its members' bases.
  """
  bases = [Base(code) for code in codes]
  family = {base: base for base in bases}  # Leads on to the least base.

  def _Find(base):
    while family[base] != base:
      base = family[base]
    return base

  for i, j in zip(*np.nonzero(_SameLook(pictures)), strict=True):
    first, second = sorted((_Find(bases[i]), _Find(bases[j])))
    family[second] = first
  return [_Find(base) for base in bases]


def _SameLook(pictures: np.ndarray) -> np.ndarray:
  """bool [n, n]: pairs i < j that look the same but for their mean colour."""
  opacity = _Shrink(pictures[..., 3:]) / 255.0
  # At most 255 * 255, which the type holds; sums of integers are exact.
  colour = _Shrink(pictures[..., :3] * pictures[..., 3:].astype(np.uint16))
  colour = colour / 255.0**2
  total = np.maximum(opacity.sum((1, 2), keepdims=True), 1.0)
  colour -= opacity * (colour.sum((1, 2), keepdims=True) / total)
  looks = np.concatenate([colour, opacity], axis=-1).reshape(len(pictures), -1)
  squares = np.sum(looks * looks, axis=1)
  distances = squares[:, np.newaxis] + squares - 2.0 * looks @ looks.T
  return np.triu(distances < looks.shape[1] * _SAME_LOOK**2, k=1)


def _Shrink(values: np.ndarray) -> np.ndarray:
  """Means: [n, size, size, k] -> [n, 12, 12, k]."""
  n, size, unused_width, channels = values.shape
  block = size // _LOOK_SIZE
  rows = values.reshape(n, _LOOK_SIZE, block, size, channels)
  rows = rows.sum(2, dtype=np.uint32)
  blocks = rows.reshape(n, _LOOK_SIZE, _LOOK_SIZE, block, channels)
  return blocks.sum(3) / block**2
