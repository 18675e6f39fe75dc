"""Tests of the tool: small sizes, for real."""

import json
import os

from absl.testing import absltest

from params.lm import table1
from tools.benchmarks import tool_process
from tools.benchmarks.paper import published
from tools.benchmarks.table_1 import planned


class _Small(table1.TransformerL):
  DIM = 32
  HIDDEN_DIM = 64
  NUM_HEADS = 2
  VOCAB_SIZE = 100
  SEQUENCE_LENGTH = 16
  NUM_LAYERS = 6


class PlannedTest(absltest.TestCase):
  def testNaiveAgreesWithThePaper(self):
    """One device without pipeline: the paper's L trains, by our count too."""
    naive = published.TRANSFORMER_SIZES[0]
    needed, params = planned.Memory(table1.TransformerL3(), naive, 'gpipe')
    self.assertEqual(params, 282_178_816)
    # Weights, two slots, two gradients: 20 bytes for each parameter.
    self.assertGreater(needed, 20 * params)

  def testMoreDevicesNeedLess(self):
    sizes = {size.setting: size for size in published.TRANSFORMER_SIZES}
    naive, params = planned.Memory(_Small(), sizes['Naive-1'], 'gpipe')
    one, again = planned.Memory(_Small(), sizes['Pipeline-1'], 'gpipe')
    eight, unused = planned.Memory(_Small(), sizes['Pipeline-8'], 'gpipe')
    self.assertEqual(params, again)
    self.assertLess(one, naive)
    self.assertLess(eight, one / 2)

  def testLargestIsTheLargest(self):
    size = published.ModelSize('Pipeline-8', 8, 8, 1.0, 1.0, 1.0)
    limits = {}

    def _Model(n):
      return type('Model', (_Small,), {'NUM_LAYERS': n})

    for n in (9, 10):
      limits[n], unused_params = planned.Memory(_Model(n)(), size, '1f1b')
    self.assertGreater(limits[10], limits[9])
    row = planned._Largest(size, _Model, 8, limits[9], '1f1b')
    self.assertEqual(row['size'], 9)
    self.assertEqual(row['memory'], limits[9])


class ToolTest(absltest.TestCase):
  def testWorkers(self):
    folder = self.create_tempdir().full_path
    result = tool_process.Run(
      'table_1',
      '--sections=workers',
      '--preset=small',
      # Less than a worker has without any work.
      '--worker_memory=100M',
      '--devices=1',
      '--micro_batches=4',
      f'--output_dir={folder}',
    )
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    with open(os.path.join(folder, 'table_1.json')) as f:
      naive, one = json.load(f)['rows']
    self.assertEqual((naive['setting'], naive['layers']), ('Naive-1', 0))
    self.assertEqual((one['setting'], one['layers']), ('Pipeline-1', 0))
    self.assertAlmostEqual(one['paper_ratio'], 2.78, delta=0.01)
    self.assertTrue(os.path.exists(os.path.join(folder, 'table_1.png')))

  def testMistakes(self):
    for args, message in (
      (['--sections=all'], '--sections=all: choose from planner, workers'),
      (['--columns=Pipeline-3'], '--columns=Pipeline-3: choose from Naive-1'),
      (['--worker_memory=much'], "'much' is not a size of memory"),
      (['--micro_batches=5'], '--micro_batches=5 does not divide'),
    ):
      result = tool_process.Run('table_1', *args)
      self.assertEqual(result.returncode, 2, result.stderr)
      self.assertIn(message, result.stderr)


if __name__ == '__main__':
  absltest.main()
