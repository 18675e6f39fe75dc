"""Tests of row_table."""

import numpy as np
import tensorflow as tf
from absl.testing import parameterized

from tasks.mt import pair_table, row_table

_SOURCES = [[5, 9, 3], [6, 3], [5, 7, 8, 9, 3], [6, 9, 3]]
_TARGETS = [[11, 3], [12, 13, 14, 3], [15, 3], [16, 17, 3]]
_GROUPS = np.array([0, 0, 0, 1], np.int32)


def _Sequences(lists):
  lengths = np.array([len(x) for x in lists])
  values = np.concatenate(lists).astype(np.uint16)
  return pair_table.Sequences(values, np.cumsum(lengths) - lengths, lengths)


def _Pairs():
  return pair_table.Pairs(_Sequences(_SOURCES), _Sequences(_TARGETS), _GROUPS)


def _Gather(table, rows, length, *, is_row=None, packing=True, ends=False):
  is_row = [True] * len(rows) if is_row is None else is_row
  fields = table.Gather(
    tf.constant(rows, tf.int64),
    tf.constant(is_row),
    tf.constant(length, tf.int64),
    packing_fields=packing,
    ends_source=ends,
  )
  return {name: value.numpy() for name, value in fields.items()}


class RowTableTest(parameterized.TestCase, tf.test.TestCase):
  def _Check(self, found, **expected):
    for name, value in expected.items():
      self.assertAllEqual(found[name], value, name)

  def testARowIsASentence(self):
    pairs = _Pairs()
    table = row_table.RowTable(pairs.source, pairs.target)
    self.assertAllEqual(table.lengths, [3, 4, 5, 3])
    found = _Gather(table, [1, 0], 5)
    self._Check(
      found,
      inputs=[[6, 3, 0, 0, 0], [5, 9, 3, 0, 0]],
      source_paddings=[[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]],
      source_positions=[[0, 1, 0, 0, 0], [0, 1, 2, 0, 0]],
      source_segment_ids=[[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]],
      target_ids=[[2, 12, 13, 14, 0], [2, 11, 0, 0, 0]],
      labels=[[12, 13, 14, 3, 0], [11, 3, 0, 0, 0]],
      target_paddings=[[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]],
      target_positions=[[0, 1, 2, 3, 0], [0, 1, 0, 0, 0]],
      target_segment_ids=[[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]],
      weights=[1, 1],
    )
    for name, value in found.items():
      is_float = name.endswith('paddings') or name == 'weights'
      self.assertEqual(value.dtype, np.float32 if is_float else np.int32, name)
    without = _Gather(table, [1, 0], 5, packing=False)
    self.assertEqual(
      set(found) - set(without),
      {
        'source_positions',
        'source_segment_ids',
        'target_positions',
        'target_segment_ids',
      },
    )

  def testRowsThatFillUp(self):
    pairs = _Pairs()
    table = row_table.RowTable(pairs.source, pairs.target)
    found = _Gather(table, [2, 2], 5, is_row=[True, False])
    self._Check(found, weights=[1, 0])
    for name, value in found.items():
      filled = 1 if name.endswith('paddings') else 0
      self.assertAllEqual(value[1], np.full_like(value[1], filled), name)

  def testCutRows(self):
    pairs = _Pairs().Cut(3)
    table = row_table.RowTable(pairs.source, pairs.target)
    found = _Gather(table, [1, 2], 3, ends=True)
    self._Check(
      found,
      inputs=[[6, 3, 0], [5, 7, 3]],
      target_ids=[[2, 12, 13], [2, 15, 0]],
      labels=[[12, 13, 14], [15, 3, 0]],
    )

  @parameterized.parameters(False, True)
  def testPacked(self, scattered):
    pairs = _Pairs()
    if scattered:
      # The same pairs out of a larger table.
      more = [[99] * 4, *_SOURCES[::-1]], [[98], *_TARGETS[::-1]]
      groups = np.array([7, *_GROUPS[::-1]], np.int32)
      pairs = pair_table.Pairs(*map(_Sequences, more), groups)
      pairs = pairs.Take(np.array([4, 3, 2, 1]))
    table, groups = row_table.RowTable.Packed(pairs, 7)
    self.assertAllEqual(groups, [0, 0, 1])
    self.assertAllEqual(table.lengths, [5, 6, 3])
    self._Check(
      _Gather(table, [1, 0, 2], 6),
      inputs=[[5, 9, 3, 6, 3, 0], [5, 7, 8, 9, 3, 0], [6, 9, 3, 0, 0, 0]],
      source_positions=[
        [0, 1, 2, 0, 1, 0],
        [0, 1, 2, 3, 4, 0],
        [0, 1, 2, 0, 0, 0],
      ],
      source_segment_ids=[
        [1, 1, 1, 2, 2, 0],
        [1, 1, 1, 1, 1, 0],
        [1, 1, 1, 0, 0, 0],
      ],
      source_paddings=[
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 1, 1, 1],
      ],
      target_ids=[
        [2, 11, 2, 12, 13, 14],
        [2, 15, 0, 0, 0, 0],
        [2, 16, 17, 0, 0, 0],
      ],
      labels=[
        [11, 3, 12, 13, 14, 3],
        [15, 3, 0, 0, 0, 0],
        [16, 17, 3, 0, 0, 0],
      ],
      target_positions=[
        [0, 1, 0, 1, 2, 3],
        [0, 1, 0, 0, 0, 0],
        [0, 1, 2, 0, 0, 0],
      ],
      target_segment_ids=[
        [1, 1, 2, 2, 2, 2],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
      ],
    )


if __name__ == '__main__':
  tf.test.main()
