"""Tests of auto_augment_policies."""

import collections

from absl.testing import absltest, parameterized

from tasks.image import auto_augment_policies


class AutoAugmentPoliciesTest(parameterized.TestCase):
  @parameterized.parameters(*auto_augment_policies.POLICIES)
  def testForm(self, name):
    policy = auto_augment_policies.POLICIES[name]
    self.assertLen(policy.sub_policies, 25)
    for sub_policy in policy.sub_policies:
      self.assertLen(sub_policy, 2)
      for operation, probability, magnitude in sub_policy:
        self.assertBetween(probability, 0.0, 1.0)
        self.assertBetween(magnitude, 0, policy.ranges.top)
        if operation not in policy.ranges.values:
          self.assertIn(operation, ('AutoContrast', 'Equalize', 'Invert'))
          self.assertEqual(magnitude, 0)

  @parameterized.parameters(
    (
      'imagenet',
      {
        'Equalize': 17,
        'Solarize': 7,
        'Rotate': 6,
        'Posterize': 5,
        'Color': 6,
        'Invert': 3,
        'AutoContrast': 2,
        'Contrast': 2,
        'Sharpness': 1,
        'ShearX': 1,
      },
      31.0,
      159,
    ),
    (
      'imagenet_v0',
      {
        'Equalize': 12,
        'Color': 9,
        'Solarize': 8,
        'Rotate': 7,
        'ShearY': 4,
        'SolarizeAdd': 2,
        'ShearX': 2,
        'Posterize': 2,
        'AutoContrast': 2,
        'Invert': 1,
        'TranslateY': 1,
      },
      29.8,
      167,
    ),
    (
      'cifar10',
      {
        'Equalize': 9,
        'AutoContrast': 7,
        'Color': 5,
        'TranslateY': 5,
        'Brightness': 4,
        'Sharpness': 5,
        'Solarize': 4,
        'Invert': 3,
        'ShearY': 2,
        'TranslateX': 2,
        'Contrast': 2,
        'Rotate': 1,
        'Posterize': 1,
      },
      26.5,
      187,
    ),
  )
  def testSums(self, name, counts, probability, magnitude):
    """A slip in a table changes one of these."""
    steps = [
      step
      for sub_policy in auto_augment_policies.POLICIES[name].sub_policies
      for step in sub_policy
    ]
    self.assertEqual(collections.Counter(x[0] for x in steps), counts)
    self.assertAlmostEqual(sum(x[1] for x in steps), probability)
    self.assertEqual(sum(x[2] for x in steps), magnitude)

  def testValues(self):
    paper, code = (
      auto_augment_policies.PAPER_RANGES,
      auto_augment_policies.CODE_RANGES,
    )
    self.assertAlmostEqual(paper.Value('Rotate', 9), 30.0)
    self.assertAlmostEqual(paper.Value('Rotate', 3), 10.0)
    self.assertAlmostEqual(paper.Value('Color', 0), 0.1)
    self.assertAlmostEqual(paper.Value('Color', 4.5), 1.0)
    self.assertAlmostEqual(paper.Value('Posterize', 9), 4.0)
    self.assertAlmostEqual(paper.Value('Solarize', 0), 256.0)
    self.assertAlmostEqual(paper.Value('Equalize', 5), 0.0)
    self.assertAlmostEqual(code.Value('Solarize', 5), 128.0)
    self.assertAlmostEqual(code.Value('SolarizeAdd', 10), 110.0)
    self.assertAlmostEqual(code.Value('ShearX', 10), 0.3)


if __name__ == '__main__':
  absltest.main()
