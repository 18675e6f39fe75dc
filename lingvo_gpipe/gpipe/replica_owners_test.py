"""Tests for replica_owners."""

from __future__ import annotations

import collections
import random
from typing import NamedTuple

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe import replica_owners


class _Spec(NamedTuple):
  path: str
  num_bytes: int
  trainable: bool = True


def _Held(specs, owners, num_replicas):
  held = [0] * num_replicas
  for spec in specs:
    held[owners[spec.path]] += spec.num_bytes
  return held


class OwnersTest(parameterized.TestCase):
  def testEqualVariablesAreDealtOutInTurn(self):
    specs = [_Spec(path, 8) for path in 'abcd']
    self.assertEqual(
      replica_owners.Owners(specs, 2), {'a': 0, 'b': 1, 'c': 0, 'd': 1}
    )

  def testLargeOnesComeFirst(self):
    specs = [_Spec('a', 1), _Spec('b', 3), _Spec('c', 2), _Spec('d', 6)]
    owners = replica_owners.Owners(specs, 2)
    self.assertEqual(owners, {'d': 0, 'b': 1, 'c': 1, 'a': 1})
    self.assertEqual(_Held(specs, owners, 2), [6, 6])

  def testOneReplicaOwnsAll(self):
    specs = [_Spec('a', 1), _Spec('b', 3, trainable=False)]
    self.assertEqual(set(replica_owners.Owners(specs, 1).values()), {0})

  def testStateStaysWithReplica0(self):
    specs = [_Spec(str(i), 10, trainable=i % 2 == 0) for i in range(12)]
    owners = replica_owners.Owners(specs, 3)
    self.assertEqual({owners[str(i)] for i in range(1, 12, 2)}, {0})
    # And counts: the others own what is trained.
    self.assertEqual(
      collections.Counter(owners[str(i)] for i in range(0, 12, 2)), {1: 3, 2: 3}
    )

  @parameterized.parameters(*range(20))
  def testBoundHoldsForEveryCut(self, seed):
    draw = random.Random(seed)
    num_replicas = draw.randint(1, 5)
    cells = [
      [
        _Spec(f'{i}/{j}', int(draw.paretovariate(1.0)))
        for j in range(draw.randint(0, 6))
      ]
      for i in range(6)
    ]
    bounds = [
      replica_owners.LargestShare([s.num_bytes for s in cell], num_replicas)
      for cell in cells
    ]
    for start in range(6):
      for end in range(start + 1, 7):
        specs = [spec for cell in cells[start:end] for spec in cell]
        held = _Held(
          specs, replica_owners.Owners(specs, num_replicas), num_replicas
        )
        self.assertEqual(sum(held), sum(s.num_bytes for s in specs))
        self.assertLessEqual(max(held), sum(bounds[start:end]))

  def testLargestShare(self):
    self.assertEqual(replica_owners.LargestShare([6, 4], 1), 10)
    self.assertEqual(replica_owners.LargestShare([6], 4), 6)
    self.assertEqual(replica_owners.LargestShare([2] * 8, 4), 6)
    self.assertEqual(replica_owners.LargestShare([], 4), 0)


if __name__ == '__main__':
  absltest.main()
