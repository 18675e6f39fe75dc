"""Tests of memory_model."""

from absl.testing import absltest

from lingvo_gpipe.gpipe.planning import cost
from lingvo_gpipe.gpipe.schedules import schedule
from tools.benchmarks import memory_model

# Cells receive 100 bytes of a micro-batch and read 1000 in the backward pass.
_CELL = cost.CellCost('cell', 2, 8, 1, 2, 1000, 100, 100, None)
_CELLS = [_CELL] * 6


def _Estimate(name, policy, partitions, num_micro_batches=8):
  return memory_model.Estimate(
    _CELLS,
    partitions,
    [policy] * len(partitions),
    schedule.MakeSchedule(name, len(partitions), num_micro_batches),
  )


class MemoryModelTest(absltest.TestCase):
  def testOnePartition(self):
    (none,) = _Estimate('1f1b', 'none', [(0, 6)])
    (cell,) = _Estimate('1f1b', 'cell', [(0, 6)])
    self.assertEqual(none, memory_model.Memory(48, 96, 800, 6000))
    # The mini-batch, five borders of one micro-batch, one cell's activations.
    self.assertEqual(cell, memory_model.Memory(48, 96, 800 + 500, 1000))
    self.assertEqual(cell.total, 48 + 96 + 1300 + 1000)

  def testFillDrainKeepsAll(self):
    first, last = _Estimate('gpipe', 'none', [(0, 3), (3, 6)])
    self.assertEqual(first.activations, 0)
    # The mini-batch, and of each micro-batch what is not an input.
    self.assertEqual(first.stored, 800 + 8 * 2900)
    self.assertEqual(last.activations, 3000)
    self.assertLess(last.stored, 800)

  def testOneForwardOneBackwardKeepsFew(self):
    fill_drain = _Estimate('gpipe', 'none', [(0, 3), (3, 6)])
    one_one = _Estimate('1f1b', 'none', [(0, 3), (3, 6)])
    self.assertLess(one_one[0].stored, fill_drain[0].stored / 2)

  def testRecomputationKeepsInputs(self):
    partition = _Estimate('gpipe', 'partition', [(0, 2), (2, 4), (4, 6)])
    cell = _Estimate('gpipe', 'cell', [(0, 2), (2, 4), (4, 6)])
    for k in range(3):
      self.assertEqual(partition[k].activations, 2000)
      self.assertEqual(cell[k].activations, 1000)
    # Inputs of all micro-batches; with 'cell' also one border of each.
    self.assertEqual(partition[0].stored, 800)
    self.assertEqual(cell[0].stored, 800 + 8 * 100)
    self.assertEqual(partition[1].stored, 800)


if __name__ == '__main__':
  absltest.main()
