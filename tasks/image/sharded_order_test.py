"""Tests of sharded_order, on files of numbers."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.image import sharded_order

# One file is empty, one has a single example.
_LENGTHS = [7, 3, 0, 8, 1, 6, 5]
_SIZE = sum(_LENGTHS)


class _Files:
  """File i has the numbers 100 i, 100 i + 1, ...; notes which were opened."""

  def __init__(self, lengths=_LENGTHS):
    self._lengths = lengths
    self.opened = []

  def Read(self, file):
    def _Open(number):
      self.opened.append(int(number))
      return number

    number = tf.py_function(_Open, [file], tf.int64)
    number.set_shape([])
    return tf.data.Dataset.range(
      tf.gather(tf.constant(self._lengths, tf.int64), file)
    ).map(lambda i: 100 * number + i)

  def All(self):
    return [
      100 * i + j for i, size in enumerate(self._lengths) for j in range(size)
    ]


def _Shuffled(start=0, count=_SIZE, files=None, **kwargs):
  settings = {'seed': 1, 'group_size': 3, 'window': 4, **kwargs}
  files = files or _Files()
  dataset = sharded_order.Shuffled(
    files.Read, files._lengths, start, **settings
  )
  return [int(x) for x in itertools.islice(dataset, count)]


class ShardedOrderTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.parameters(0, 3, 7, 10, 17, 29, 30)
  def testStraight(self, start):
    files = _Files()
    dataset = sharded_order.Straight(files.Read, _LENGTHS, start)
    self.assertEqual([int(x) for x in dataset], files.All()[start:])
    before = np.searchsorted(np.cumsum(_LENGTHS), start, side='right')
    self.assertEqual(files.opened, list(range(before, len(_LENGTHS))))

  @parameterized.parameters((3, 4), (1, 1), (7, 100), (100, 5), (2, 30))
  def testEveryEpochHasEveryExample(self, group_size, window):
    epochs = np.reshape(
      _Shuffled(count=4 * _SIZE, group_size=group_size, window=window),
      [4, _SIZE],
    )
    self.assertAllEqual(np.sort(epochs, 1), [_Files().All()] * 4)
    self.assertLen(np.unique(epochs, axis=0), 4)

  def testAnyPlaceCanBeReached(self):
    unbroken = _Shuffled(count=3 * _SIZE)
    for start in (0, 1, 7, 12, 13, 18, 29, 30, 31, 47, 60):
      self.assertEqual(
        _Shuffled(start, 20), unbroken[start : start + 20], start
      )

  def testFarPlace(self):
    start = 10**9 * _SIZE
    self.assertEqual(sorted(_Shuffled(start)), _Files().All())

  def testGroupsBeforeAreNotOpened(self):
    lengths = [10] * 40
    everything = _Files(lengths)
    order = _Shuffled(0, 400, everything, window=10)
    resumed = _Files(lengths)
    self.assertEqual(_Shuffled(365, 35, resumed, window=10), order[365:])
    # Of the 14 groups of 3 (the last of 1), 12 lie before; one more may be
    # opened beyond the end of the epoch, since windows are read ahead.
    self.assertEqual(resumed.opened[:4], everything.opened[36:40])
    self.assertLessEqual(len(resumed.opened), 4 + 3)

  def testMixesFilesOfAGroup(self):
    lengths = [50] * 8
    order = _Shuffled(0, 400, _Files(lengths), group_size=4, window=40)
    for begin in range(0, 400, 40):
      files = np.array(order[begin : begin + 40]) // 100
      counts = np.bincount(files, minlength=8)
      self.assertCountEqual(counts, [10] * 4 + [0] * 4)
      # In no order: a round over the files would repeat after four.
      self.assertNotAllEqual(files[:4], files[4:8])

  def testGroupsDifferFromEpochToEpoch(self):
    lengths = [1] * 12
    order = np.reshape(_Shuffled(0, 60, _Files(lengths)), [5, 4, 3])
    groups = {tuple(sorted(g)) for epoch in order for g in epoch}
    self.assertGreater(len(groups), 12)

  def testSeed(self):
    self.assertEqual(_Shuffled(), _Shuffled())
    self.assertNotEqual(_Shuffled(), _Shuffled(seed=2))

  def testExamplesOfSeveralParts(self):
    def _Read(file):
      return tf.data.Dataset.range(5).map(lambda i: {'a': i, 'b': (file, -i)})

    dataset = sharded_order.Shuffled(
      _Read, [5, 5], 0, seed=1, group_size=2, window=3
    )
    seen = [
      (int(x['b'][0]), int(x['a']), int(x['b'][1])) for x in dataset.take(10)
    ]
    self.assertCountEqual(
      seen, [(f, i, -i) for f in range(2) for i in range(5)]
    )


if __name__ == '__main__':
  tf.test.main()
