"""Tests of pipeline, on worker processes."""

import numpy as np
from absl.testing import absltest

from lingvo_gpipe import cluster
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import pipeline, stack_sizes, transformer_stack

_SIZES = stack_sizes.Sizes(4, 8, 16, 2, 4, 8)


class PipelineTest(absltest.TestCase):
  def testStepsOnWorkers(self):
    weights = transformer_stack.WeightArrays(_SIZES)
    losses, nodes = {}, {}
    configs = (
      pipeline.Config(1, 2),
      pipeline.Config(1, 2, unrolled=True),
      pipeline.Config(2, 4, cut='equal', policy='partition'),
      pipeline.Config(2, 8, cut='equal', policy='partition'),
      pipeline.Config(2, 4, 'interleaved', 2, 'none+cell+none+cell'),
    )
    with local_workers.LocalWorkers(2) as workers:
      devices = cluster.Connect(workers.addresses).devices
      for config in configs:
        built = pipeline.Pipeline(
          config, _SIZES, devices, learning_rate=0.1, weights=weights
        )
        nodes[config] = built.num_nodes
        result, seconds = built.TimedStep()
        losses[config] = [built.first_result.loss, result.loss]
        self.assertGreater(seconds, 0.0)
        self.assertGreater(min(built.first_step), 0.0)
        if config.unrolled:
          self.assertEmpty(result.times)
          continue
        if config.cut == 'equal':
          self.assertEqual(built.blocks, [2, 2])
        self.assertEqual(sum(built.blocks), 4)
        self.assertLen(set(built.plan.devices), config.num_devices)
        self.assertLen(result.times, config.num_partitions)
        for times in result.times:
          self.assertEqual(times.shape, (config.num_micro_batches, 7))
          self.assertLess(np.ptp(times), 60.0)
    expected = losses[configs[0]]
    self.assertLess(expected[1], expected[0])
    for config, found in losses.items():
      np.testing.assert_allclose(
        found, expected, rtol=1e-5, err_msg=config.name
      )
    # The graph does not grow with the number of micro-batches.
    self.assertEqual(nodes[configs[2]], nodes[configs[3]])

  def testEqualCut(self):
    self.assertEqual(pipeline.EqualCut(8, 2), [4, 4])
    self.assertEqual(pipeline.EqualCut(7, 3), [2, 2, 3])

  def testNames(self):
    config = pipeline.Config(2, 8, 'interleaved', 2, 'cell', jit_compile=True)
    self.assertEqual(config.name, 'K=2 M=8 interleaved x2 cell jit')
    self.assertEqual(config.num_partitions, 4)
    self.assertEqual(config.MakeSchedule().num_devices, 2)


if __name__ == '__main__':
  absltest.main()
