"""Tests of batching."""

import numpy as np
from absl.testing import absltest, parameterized

from tasks.mt import batching


def _Buckets(
  lengths=(8, 16, 40), batch_tokens=0, batch_size=12, batch_multiple=4
):
  return batching.Buckets(
    lengths,
    batch_tokens=batch_tokens,
    batch_size=batch_size,
    batch_multiple=batch_multiple,
  )


class BatchingTest(parameterized.TestCase):
  def testBatchSize(self):
    self.assertEqual(_Buckets(), ((8, 12), (16, 12), (40, 12)))

  @parameterized.parameters(160, 161, 999, 4096)
  def testBatchTokens(self, batch_tokens):
    for length, rows in _Buckets(batch_tokens=batch_tokens):
      self.assertEqual(rows % 4, 0)
      self.assertLessEqual(rows * length, batch_tokens)
      self.assertGreater((rows + 4) * length, batch_tokens)

  @parameterized.parameters(
    ({'lengths': ()}, 'must be numbers from 2'),
    ({'lengths': (8, 8)}, 'each larger'),
    ({'lengths': (16, 8)}, 'each larger'),
    ({'lengths': (1, 8)}, 'must be numbers from 2'),
    ({'batch_multiple': 0}, 'batch_multiple=0'),
    ({'batch_multiple': 5}, 'batch_size=12.*such as 15'),
    ({'batch_tokens': 159}, 'batch_tokens=159 is too few.*take 160'),
  )
  def testErrors(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      _Buckets(**kwargs)

  def testBucketOf(self):
    found = batching.BucketOf(_Buckets(), np.array([1, 8, 9, 16, 17, 40]))
    self.assertEqual(found.tolist(), [0, 0, 1, 1, 2, 2])


if __name__ == '__main__':
  absltest.main()
