"""Tests of emoji_input_families."""

import numpy as np
from absl.testing import absltest, parameterized

from tasks.image import emoji_input_families


def _Pictures(count, seed=1):
  """Opaque noise: no two look the same."""
  draws = np.random.default_rng(seed).integers(0, 256, (count, 24, 24, 4))
  pictures = np.repeat(np.repeat(draws[:, ::2, ::2], 2, 1), 2, 2)
  pictures[..., 3] = 255
  return pictures.astype(np.uint8)


def _Families(pictures):
  codes = [f'{i:x}' for i in range(len(pictures))]
  return emoji_input_families.Families(codes, pictures)


class BaseTest(parameterized.TestCase):
  @parameterized.parameters(
    ('2764', '2764'),
    # Cooks: a person, a woman, a woman with a skin tone.
    ('1f9d1-200d-1f373', '1f373'),
    ('1f469-200d-1f373', '1f373'),
    ('1f469-1f3fb-200d-1f373', '1f373'),
    # Runners: one, a woman, a woman with a skin tone facing right.
    ('1f3c3', '1f3c3'),
    ('1f3c3-200d-2640', '1f3c3'),
    ('1f3c3-1f3fd-200d-2640-200d-27a1', '1f3c3'),
    # Adults alone; two of them holding hands.
    ('1f468', '1f468'),
    ('1f469-1f3ff', '1f469'),
    ('1f9d1-200d-1f91d-200d-1f9d1', '1f91d'),
    # Flags are no variants of their first letter.
    ('1f1e9-1f1ea', '1f1e9-1f1ea'),
    ('1f1e9-1f1f0', '1f1e9-1f1f0'),
    ('1f408-200d-2b1b', '1f408'),
  )
  def testBase(self, code, expected):
    self.assertEqual(emoji_input_families.Base(code), expected)


class FamiliesTest(parameterized.TestCase):
  def testDifferentPictures(self):
    self.assertEqual(_Families(_Pictures(5)), ['0', '1', '2', '3', '4'])

  def testByCode(self):
    codes = ['5', '1f469-200d-5', '6', '7-200d-2642', '7']
    families = emoji_input_families.Families(codes, _Pictures(5))
    self.assertEqual(families, ['5', '5', '6', '7', '7'])

  def testRecoloured(self):
    pictures = _Pictures(4) // 2
    pictures[..., 3] = 255
    pictures[3] = pictures[1]
    pictures[3, ..., 0] += 100
    self.assertEqual(_Families(pictures), ['0', '1', '2', '1'])

  def testPlainShapesDifferByTheirOutline(self):
    pictures = np.zeros((4, 24, 24, 4), np.uint8)
    pictures[:2, 2:22, 2:22] = 255  # Squares,
    pictures[1, ..., 1] //= 3
    pictures[2:, 2:22, 2:12] = 255  # and bars.
    pictures[3, ..., 2] //= 2
    self.assertEqual(_Families(pictures), ['0', '0', '2', '2'])

  def testColourOfTransparentPixelsDoesNotMatter(self):
    pictures = _Pictures(3)
    pictures[..., 12:, 3] = 0
    pictures[2, :, :12] = pictures[0, :, :12]
    self.assertEqual(_Families(pictures), ['0', '1', '0'])

  def testThroughOthers(self):
    # 0 looks like 3, which shares its code with 2, which looks like 1.
    pictures = _Pictures(5)
    pictures[3], pictures[1] = pictures[0], pictures[2]
    codes = ['c', 'b', '1f468-200d-a', 'a', 'd']
    families = emoji_input_families.Families(codes, pictures)
    self.assertEqual(families, ['a', 'a', 'a', 'a', 'd'])

  def testOrderDoesNotMatter(self):
    pictures = _Pictures(6)
    pictures[4], pictures[5] = pictures[2], pictures[0]
    codes = list('fedcba')
    expected = dict(
      zip(codes, emoji_input_families.Families(codes, pictures), strict=True)
    )
    order = [3, 5, 0, 2, 4, 1]
    codes = [codes[i] for i in order]
    families = emoji_input_families.Families(codes, pictures[order])
    self.assertEqual(dict(zip(codes, families, strict=True)), expected)

  @parameterized.parameters(4, 32)
  def testSlightChanges(self, change):
    pictures = np.full((2, 24, 24, 4), 128, np.uint8)
    pictures[..., 3] = 255
    # Half the pixels brighter, half darker: the mean colour stays.
    pictures[1, :, :12, :3] += change
    pictures[1, :, 12:, :3] -= change
    # sqrt(3/4) * change / 255: opacity is the channel that never differs.
    same = change == 4
    self.assertEqual(_Families(pictures), ['0', '0' if same else '1'])


if __name__ == '__main__':
  absltest.main()
