"""Tests for model_costs."""

from __future__ import annotations

from absl.testing import absltest

from lingvo_gpipe.gpipe import micro_batch
from lingvo_gpipe.gpipe.planning import cost
from tools.benchmarks import stack_sizes, transformer_stack
from tools.plan import check_runs, model_costs

_SIZES = stack_sizes.Sizes(
  layers=3, model_dim=8, ffn_dim=16, heads=2, tokens=4, batch=8
)


class NetCostsTest(absltest.TestCase):
  def testCountsOfAMicroBatch(self):
    model = check_runs.Costs(_SIZES)
    self.assertEqual((model.num_cells, model.batch_size), (4, 8))
    counted = model.Count(2)
    spec = micro_batch.MicroSpecs(transformer_stack.BatchSpec(_SIZES), 4)
    self.assertEqual(
      counted.costs, cost.CountCells(model.net.cells, spec.inputs, spec)
    )
    self.assertEqual(
      counted.field_bytes, {'inputs': 2 * 4 * 8 * 4, 'labels': 2 * 4 * 8 * 4}
    )
    self.assertIs(model.Count(2), counted)
    self.assertGreater(
      model.Count(4).costs[1].forward_flops, counted.costs[1].forward_flops
    )

  def testStateOfEachVariable(self):
    model = check_runs.Costs(_SIZES)
    of_block = model.state_sizes[0]
    # Adam's two slots of two norms, two projections and two layers.
    self.assertLen(of_block, 2 * 6)
    self.assertEqual(sum(of_block), 2 * model.Count(1).costs[0].param_bytes)
    self.assertEqual(model.state_sizes[-1], [])

  def testMiniBatchesOfSeveralSizes(self):
    task = check_runs.TaskParams(_SIZES).Instantiate()
    spec = transformer_stack.BatchSpec(_SIZES)
    self.assertEqual(model_costs.NetCosts(task.net, spec).divisible, 8)
    self.assertEqual(
      model_costs.NetCosts(task.net, spec, divisible=4).divisible, 4
    )

  def testMeasure(self):
    times = check_runs.Costs(_SIZES).Measure(2)
    self.assertLen(times, 4)
    self.assertEqual(times[1], times[2])
    self.assertGreater(min(t.forward for t in times), 0.0)


if __name__ == '__main__':
  absltest.main()
