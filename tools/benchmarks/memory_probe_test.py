"""Tests of memory_probe, with processes."""

import dataclasses

from absl.testing import absltest

from tools.benchmarks import memory_probe, pipeline, stack_sizes

_SIZES = stack_sizes.PRESETS['small']
_MIB = 2**20


class MemoryProbeTest(absltest.TestCase):
  def testTrainsAndRunsOutOfMemory(self):
    # 32768 tokens of 16 numbers: 2 MiB. With M = 1 there is all at once that
    # the backward pass reads of 4 blocks.
    sizes = stack_sizes.Sizes(4, 16, 32, 2, 8, 4096)
    job = memory_probe.Job(pipeline.Config(1, 1), sizes)
    outcome = memory_probe.Run(job, timeout=120.0)
    self.assertEqual(outcome.status, memory_probe.TRAINED, outcome.detail)
    self.assertEqual(outcome.blocks, [4])
    self.assertGreater(outcome.loss, 0.0)
    (arithmetic,) = outcome.arithmetic
    activations = arithmetic['activations']
    # At least qkv, norms, the hidden layer and so on: 10 times that.
    self.assertGreater(activations, 4 * 10 * 2 * _MIB)
    (grown,) = outcome.grown
    self.assertGreater(grown, activations)
    self.assertLess(grown, 3 * activations + 100 * _MIB)

    limit = max(outcome.idle) + activations // 2
    outcome = memory_probe.Run(
      dataclasses.replace(job, memory_limit=limit), timeout=120.0
    )
    self.assertEqual(outcome.status, memory_probe.OUT_OF_MEMORY, outcome.detail)
    self.assertIn('memory limit of ', outcome.detail)

  def testLimitBelowThatOfNoWork(self):
    job = memory_probe.Job(pipeline.Config(1, 2), _SIZES, 50 * _MIB)
    outcome = memory_probe.Run(job, timeout=120.0)
    self.assertEqual(outcome.status, memory_probe.OUT_OF_MEMORY)
    self.assertIn(' 50 MiB', outcome.detail)

  def testFails(self):
    # 3 micro-batches of 8 examples.
    outcome = memory_probe.Run(
      memory_probe.Job(pipeline.Config(1, 3), _SIZES), timeout=120.0
    )
    self.assertEqual(outcome.status, memory_probe.FAILED)
    self.assertIn('3', outcome.detail)
    job = memory_probe.Job(pipeline.Config(1, 2), _SIZES)
    outcome = memory_probe.Run(job, timeout=0.1)
    self.assertEqual(outcome.status, memory_probe.FAILED)
    self.assertIn('not done after', outcome.detail)


if __name__ == '__main__':
  absltest.main()
