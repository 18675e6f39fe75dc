"""Tests for check_runs; what is measured is not compared with anything."""

from __future__ import annotations

from absl.testing import absltest

from tools.benchmarks import stack_sizes
from tools.plan import check, check_runs, device, evaluation

_SIZES = stack_sizes.Sizes(
  layers=2, model_dim=8, ffn_dim=16, heads=2, tokens=4, batch=4
)


class RowTest(absltest.TestCase):
  def testErrors(self):
    candidate = check_runs.Candidate(_SIZES, 2, 2, 'gpipe', 'cell')
    planned = evaluation.Planned(
      candidate,
      ranges=((0, 1), (1, 3)),
      policies=('cell', 'cell'),
      memory=(100, 120),
      loop_seconds=2.0,
      all_reduce_seconds=0.0,
      update_seconds=1.0,
      bubble=0.0,
    )
    row = check_runs.Row(
      planned, check_runs.Measured([150, 90], [9.0, 4.0, 2.0])
    )
    self.assertAlmostEqual(row.memory_error, -0.2)
    self.assertAlmostEqual(row.seconds_error, -0.25)
    shown = check.AsRow(row)
    self.assertEqual((shown['memory'], shown['predicted_memory']), (150, 120))
    self.assertEqual((shown['fastest'], shown['slowest']), (2.0, 9.0))
    self.assertEqual(shown['policies'], 'cell')

  def testCandidateThatTheStackIsTooSmallFor(self):
    with self.assertRaisesRegex(ValueError, 'divides the 4 examples'):
      check_runs.Candidate(_SIZES, 1, 3, '1f1b', 'none')
    with self.assertRaisesRegex(ValueError, 'no K of --partitions=4'):
      check_runs.Candidate(_SIZES, 4, 2, '1f1b', 'none')


class RunTest(absltest.TestCase):
  def testPlannedPipelineOnWorkers(self):
    evaluator = evaluation.Evaluator(
      check_runs.Costs(_SIZES), device.Device(flops=1e9, link_speed=1e9)
    )
    planned = evaluator.Evaluate(
      check_runs.Candidate(_SIZES, 2, 2, '1f1b', 'partition')
    )
    measured = check_runs.Run(planned, _SIZES, num_steps=2)
    self.assertLen(measured.memory, 2)
    self.assertGreater(min(measured.memory), 2**26)
    self.assertLen(measured.seconds, 2)
    self.assertGreater(measured.median, 0.0)


if __name__ == '__main__':
  absltest.main()
