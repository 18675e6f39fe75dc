"""Tests of simulation: against the formulas of equal cells."""

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.planning import partition
from tools.benchmarks.paper import simulation
from tools.plan import fake_model


def _Times(num_cells):
  """Equal cells whose times are proportional to the examples."""
  return {
    n: [partition.CellTime(1.0 * n, 2.0 * n)] * num_cells
    for n in (1, 2, 4, 8, 16, 32)
  }


class SimulationTest(parameterized.TestCase):
  @parameterized.parameters((2, 4), (4, 4), (8, 32))
  def testEqualCells(self, num_devices, num_micro_batches):
    model = fake_model.FakeModel(num_cells=8, batch_size=32)
    pipelines = [
      simulation.Pipeline(k, num_micro_batches, 32, policy='none')
      for k in (1, num_devices)
    ]
    alone, row = simulation.Play(model, _Times(8), pipelines)
    self.assertAlmostEqual(alone['seconds'], 32 * 8 * 3.0)
    # K M / (M + K - 1), and the bubble of the paper.
    k, m = num_devices, num_micro_batches
    self.assertAlmostEqual(
      row['throughput'] / alone['throughput'], k * m / (m + k - 1)
    )
    self.assertAlmostEqual(row['bubble'], (k - 1) / (m + k - 1))

  def testSlowLinks(self):
    model = fake_model.FakeModel(num_cells=4, batch_size=8)
    pipelines = [simulation.Pipeline(2, 8, 8)]
    (fast,) = simulation.Play(model, _Times(4), pipelines)
    (slow,) = simulation.Play(model, _Times(4), pipelines, link_speed=1e-3)
    self.assertGreater(slow['seconds'], 2 * fast['seconds'])

  def testOnlyEvenSplits(self):
    pipelines = simulation.Pipelines([1, 2], [1, 3, 4], 8)
    self.assertEqual(
      [(p.num_devices, p.num_micro_batches) for p in pipelines],
      [(1, 1), (2, 1), (1, 4), (2, 4)],
    )

  def testRelative(self):
    rows = [
      {'num_devices': k, 'num_micro_batches': 1, 'throughput': 10.0 * k}
      for k in (1, 2, 4)
    ]
    simulation.AddRelative(rows, 'throughput', (2, 1), {(4, 1): 1.9})
    self.assertEqual([row['relative'] for row in rows], [0.5, 1.0, 2.0])
    self.assertEqual([row['paper'] for row in rows], [None, None, 1.9])


if __name__ == '__main__':
  absltest.main()
