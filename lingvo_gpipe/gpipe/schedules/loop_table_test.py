"""Tests for loop_table."""

from __future__ import annotations

import itertools
import time

import numpy as np
from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.schedules import (
  loop_table,
  schedule,
  schedule_makers,
  schedule_table,
)
from lingvo_gpipe.gpipe.timelines import simulated_times

_ONE_PER_DEVICE = ('gpipe', '1f1b', 'eager_1f1b')


def _Make(name, num_partitions, num_micro_batches, num_devices=None):
  return loop_table.MakeLoopTable(
    schedule.MakeSchedule(name, num_partitions, num_micro_batches, num_devices)
  )


def _ManyTables(limit):
  """Of all schedules, with up to `limit` forward passes."""
  for k in range(1, limit + 1):
    for m in range(1, limit // k + 1):
      for name in _ONE_PER_DEVICE:
        yield _Make(name, k, m)
      for d in range(1, k + 1):
        if k % d == 0:
          yield _Make('interleaved', k, m, d)


class _Simulator:
  """Runs a loop table on rings of plain lists.

  Every partition sends to every later one. Values say what they are.
  """

  def __init__(self, table):
    self._table = table
    partitions = range(table.schedule.num_partitions)
    self._last = partitions[-1]
    self._rings, self._arrays = {}, {}
    for k in partitions:
      self._AddRing(('kept', k, k), table.Kept(k))
    for source, target in itertools.combinations(partitions, 2):
      self._AddRing(
        ('outputs', source, target), table.Activations(source, target, False)
      )
      self._AddRing(
        ('inputs', source, target), table.Activations(source, target, True)
      )
      self._AddRing(
        ('gradients', source, target), table.Gradients(source, target)
      )

  def _AddRing(self, key, ring):
    self._rings[key] = ring
    self._arrays[key] = [None] * (ring.size + 1)

  def _Read(self, key, micro_batch):
    value = self._arrays[key][self._rings[key].slots[micro_batch]]
    if value != (key, micro_batch):
      raise AssertionError(f'{value} instead of {(key, micro_batch)}')

  def Run(self):
    """Raises an AssertionError where something is not there to be read."""
    sent = {}
    for row in range(self._table.num_rows):
      # All rings are written in all rows, as in the real loop.
      for key, ring in self._rings.items():
        if key[0] != 'kept':
          self._arrays[key][ring.writes[row]] = sent.get(key)
      sent = {}
      for k, micro_batch in enumerate(self._table.forward[row].tolist()):
        if micro_batch >= 0:
          self._Forward(k, micro_batch, row, sent)
      for k, micro_batch in enumerate(self._table.backward[row].tolist()):
        if micro_batch >= 0:
          self._Backward(k, micro_batch, sent)
    if sent:
      raise AssertionError(f'{sent} never arrives')

  def _Forward(self, k, micro_batch, row, sent):
    for source in range(k):
      self._Read(('outputs', source, k), micro_batch)
    key = ('kept', k, k)
    ring = self._rings[key]
    if ring.slots[micro_batch] != ring.writes[row]:
      raise AssertionError(f'writes of {key} do not agree with slots')
    self._arrays[key][ring.writes[row]] = (key, micro_batch)
    for target in range(k + 1, self._last + 1):
      for kind in ('outputs', 'inputs'):
        sent[kind, k, target] = ((kind, k, target), micro_batch)

  def _Backward(self, k, micro_batch, sent):
    for source in range(k):
      self._Read(('inputs', source, k), micro_batch)
      sent['gradients', source, k] = (('gradients', source, k), micro_batch)
    self._Read(('kept', k, k), micro_batch)
    for target in range(k + 1, self._last + 1):
      self._Read(('gradients', k, target), micro_batch)


def _LoopSeconds(table):
  """How long the loop takes, F 1 second and B 2.

  A pass waits for its device, and for all that was sent in the rows before.
  """
  made_of = table.schedule
  last, num_devices = made_of.num_partitions - 1, made_of.num_devices
  free = [0] * num_devices
  # When the last of what partitions sent forth and back so far has left.
  forth, back = [0] * (last + 1), [0] * (last + 2)
  for forward, backward in zip(table.forward, table.backward, strict=True):
    arrived, returned = [0, *forth], list(back)
    for k in range(last):
      if forward[k] >= 0:
        start = max(free[k % num_devices], arrived[k])
        forth[k] = free[k % num_devices] = start + 1
    for k in range(last + 1):
      if backward[k] >= 0:
        arrival = arrived[k] if k == last else returned[k + 1]
        start = max(free[k % num_devices], arrival)
        back[k] = free[k % num_devices] = start + 2 + (k == last)
  return max(free)


def _ScheduleSeconds(table):
  """The same of the schedule: a pass waits for what it needs."""
  made_of = table.schedule
  times = simulated_times.Times(
    made_of,
    [1.0] * made_of.num_partitions,
    [2.0] * made_of.num_partitions,
    [0.0] * made_of.num_partitions,
  )
  return times.max()


def _Overlap(first, last):
  """The most intervals that any row is in."""
  rows = np.arange(last.max() + 1)[:, np.newaxis]
  return np.sum((first <= rows) & (rows <= last), axis=1).max()


def _Rows(column):
  """[num_micro_batches], the rows of a column in order of micro-batches."""
  rows = np.nonzero(column >= 0)[0]
  return rows[np.argsort(column[rows])]


class LoopTableTest(parameterized.TestCase):
  def testReplayOfManySchedules(self):
    count = 0
    for table in _ManyTables(32):
      made_of = table.schedule
      with self.subTest(
        name=made_of.name,
        d=made_of.num_devices,
        v=made_of.num_chunks,
        m=made_of.num_micro_batches,
      ):
        _Simulator(table).Run()
      count += 1
    self.assertGreater(count, 600)

  def testRowsOfManySchedules(self):
    for table in _ManyTables(40):
      made_of = table.schedule
      m, last = made_of.num_micro_batches, made_of.num_partitions - 1
      for name in ('forward', 'backward'):
        passes = getattr(table, name)
        self.assertEqual(passes.dtype, np.int32)
        self.assertEqual(passes.shape, (table.num_rows, last + 1))
        for k in range(last + 1):
          # Each micro-batch once, in ascending order.
          column = passes[:, k]
          self.assertEqual(column[column >= 0].tolist(), list(range(m)))
        # A device runs one pass of each direction, besides the forward pass
        # that belongs to a backward pass.
        busy = passes >= 0
        if name == 'forward':
          busy = busy[:, :last]
        for device in range(made_of.num_devices):
          of_device = busy[:, device :: made_of.num_devices]
          self.assertLessEqual(of_device.sum(axis=1).max(), 1)
      self.assertTrue(
        np.array_equal(table.forward[:, last], table.backward[:, last])
      )
      # No row is empty.
      self.assertTrue(
        np.all(np.maximum(table.forward, table.backward).max(axis=1) >= 0)
      )

  def testNoPassWaitsForWhatItDoesNotNeed(self):
    slower = 0
    for table in _ManyTables(40):
      made_of = table.schedule
      with self.subTest(
        name=made_of.name,
        d=made_of.num_devices,
        v=made_of.num_chunks,
        m=made_of.num_micro_batches,
      ):
        seconds = _LoopSeconds(table) - _ScheduleSeconds(table)
        if made_of.name == 'gpipe':  # See drain_rows.py.
          self.assertIn(seconds, (0, 1, 2))
          slower += seconds > 0
        else:
          self.assertEqual(seconds, 0)
    self.assertGreater(slower, 0)

  def testDevicesKeepTheOrderOfTheSchedule(self):
    for table in _ManyTables(32):
      made_of = table.schedule
      last = made_of.num_partitions - 1
      for device in range(made_of.num_devices):
        wanted = [
          slot
          for _, d, slot in made_of.Slots()
          if d == device
          and (slot.partition, slot.direction) != (last, 'forward')
        ]
        got = []
        for row in range(table.num_rows):
          for name in ('forward', 'backward'):
            for k in range(device, last + 1, made_of.num_devices):
              micro_batch = getattr(table, name)[row, k]
              if micro_batch >= 0 and (k, name) != (last, 'forward'):
                got.append(schedule_table.Slot(micro_batch, k, name))
        self.assertEqual(got, wanted, made_of.name)

  def testRingsAreNoLargerThanNeeded(self):
    for table in _ManyTables(24):
      partitions = range(table.schedule.num_partitions)
      forward = [_Rows(table.forward[:, k]) for k in partitions]
      backward = [_Rows(table.backward[:, k]) for k in partitions]
      for k in partitions:
        self.assertEqual(table.Kept(k).size, _Overlap(forward[k], backward[k]))
      for source, target in itertools.combinations(partitions, 2):
        arrival = forward[source] + 1
        for until_backward, last in ((False, forward), (True, backward)):
          self.assertEqual(
            table.Activations(source, target, until_backward).size,
            _Overlap(arrival, last[target]),
          )
        self.assertEqual(
          table.Gradients(source, target).size,
          _Overlap(backward[target] + 1, backward[source]),
        )

  def testKeepsWhatTheScheduleSays(self):
    for table in _ManyTables(40):
      in_flight = table.schedule.InFlight()
      last = len(in_flight) - 1
      kept = [table.Kept(k).size for k in range(last + 1)]
      # Forward and backward pass of the last partition are one.
      self.assertEqual(kept, [*in_flight[:last], 1])


class KnownTablesTest(parameterized.TestCase):
  def test1F1B(self):
    table = _Make('1f1b', 3, 4)
    # Partitions 0, 1, 2.
    self.assertEqual(
      table.forward.T.tolist(),
      [
        [0, 1, 2, -1, -1, 3, -1, -1, -1, -1],
        [-1, 0, 1, -1, 2, -1, 3, -1, -1, -1],
        [-1, -1, 0, 1, -1, 2, -1, 3, -1, -1],
      ],
    )
    self.assertEqual(
      table.backward.T.tolist(),
      [
        [-1, -1, -1, -1, 0, 1, -1, 2, -1, 3],
        [-1, -1, -1, 0, 1, -1, 2, -1, 3, -1],
        [-1, -1, 0, 1, -1, 2, -1, 3, -1, -1],
      ],
    )
    ring = table.Activations(0, 1, until_backward=True)
    self.assertEqual(ring.size, 3)
    self.assertEqual(ring.slots.tolist(), [0, 1, 2, 0])
    self.assertEqual(ring.writes.tolist(), [3, 0, 1, 2, 3, 3, 0, 3, 3, 3])
    self.assertEqual(ring.slots.dtype, np.int32)
    self.assertEqual(ring.writes.dtype, np.int32)

  @parameterized.parameters(1, 2, 3, 4, 5, 8, 9, 30)
  def testNumberOfRows(self, m):
    for name in _ONE_PER_DEVICE:
      self.assertEqual(_Make(name, 1, m).num_rows, m)
    for k in range(2, 9):
      self.assertEqual(_Make('eager_1f1b', k, m).num_rows, m + 2 * (k - 1))
      # The last partition is done with its first backward passes when
      # partition K - 2 begins to run some.
      self.assertEqual(
        _Make('gpipe', k, m).num_rows, m + 2 * (k - 1) + max(0, m - 3)
      )
      # Forward and backward passes of K micro-batches seldom share a row.
      self.assertEqual(
        _Make('1f1b', k, m).num_rows, 2 * (m + k) - 3 - -(-(m - 1) // k)
      )

  @parameterized.parameters((1, 3, 4), (2, 2, 8), (4, 2, 12), (4, 3, 11))
  def testNumberOfRowsOfInterleaved(self, d, v, m):
    group = len(schedule_makers.Groups(d, m)[0])
    self.assertEqual(
      _Make('interleaved', d * v, m, d).num_rows,
      v * m + 2 * (d - 1) + (v - 1) * group,
    )

  def testSteadyStateOfEager1F1BFillsRows(self):
    k, m = 4, 20
    table = _Make('eager_1f1b', k, m)
    steady = slice(2 * (k - 1), m)
    self.assertTrue(np.all(table.forward[steady] >= 0))
    self.assertTrue(np.all(table.backward[steady] >= 0))

  @parameterized.parameters(
    # Kept, activations until forward, until backward, gradients: a list each.
    ('gpipe', [16, 16, 16], [1, 1, 11], [16, 16, 11], [1, 1, 5]),
    ('1f1b', [4, 3, 2], [1, 1, 1], [4, 3, 1], [1, 1, 1]),
    ('eager_1f1b', [7, 5, 3], [1, 1, 1], [5, 3, 1], [1, 1, 1]),
  )
  def testRingSizes(self, name, kept, forth, stay, back):
    table = _Make(name, 4, 16)
    borders = list(itertools.pairwise(range(4)))
    self.assertEqual([table.Kept(k).size for k in range(3)], kept)
    self.assertEqual(
      [table.Activations(*border, False).size for border in borders], forth
    )
    self.assertEqual(
      [table.Activations(*border, True).size for border in borders], stay
    )
    self.assertEqual(
      [table.Gradients(*border).size for border in borders], back
    )

  def testBadPartitions(self):
    table = _Make('1f1b', 3, 4)
    for source, target in ((1, 1), (2, 1), (0, 3), (-1, 1)):
      with self.assertRaisesRegex(
        ValueError, f'source={source} and target={target} must be two of 3'
      ):
        table.Activations(source, target, until_backward=False)
      with self.assertRaisesRegex(ValueError, 'the earlier one first'):
        table.Gradients(source, target)

  def testLargeTablesAreMadeFast(self):
    made_of = schedule.MakeSchedule('1f1b', 128, 1024)
    start = time.process_time()
    table = loop_table.MakeLoopTable(made_of)
    for k in range(127):
      table.Kept(k)
      table.Gradients(k, k + 1)
      table.Activations(k, k + 1, until_backward=True)
    # 0.5 s as measured.
    self.assertLess(time.process_time() - start, 5)


if __name__ == '__main__':
  absltest.main()
