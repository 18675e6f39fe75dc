"""Tests for policies."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import policies


class PoliciesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('cell', ['cell'] * 3),
    ('auto', ['auto'] * 3),
    (['none', 'auto', 'partition'], ['none', 'auto', 'partition']),
    ('none+auto+partition', ['none', 'auto', 'partition']),
  )
  def testPolicies(self, rematerialize, expected):
    self.assertEqual(policies.Policies(rematerialize, 3), expected)

  @parameterized.parameters(
    'all', 'none+none', [['none', 'none']], [['none', 'x', 'none']]
  )
  def testErrors(self, rematerialize):
    with self.assertRaisesRegex(
      ValueError, 'must be one of none, partition, cell, auto, or a list.* 3 p'
    ):
      policies.Policies(rematerialize, 3)

  def testTheLastPartitionKeepsWhatItHasJustComputed(self):
    self.assertEqual(policies.Recompute(['none'] * 2), [False, False])
    self.assertEqual(policies.Recompute(['partition'] * 2), [True, False])
    self.assertEqual(policies.Recompute(['cell'] * 2), [True, True])


if __name__ == '__main__':
  absltest.main()
