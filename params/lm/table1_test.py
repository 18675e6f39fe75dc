"""Tests of table1: the paper's sizes and partitions, without any memory."""

from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import registry, user_error
from lingvo_gpipe.gpipe import placement
from params.lm import table1

# L, K and parameters as the paper prints them.
_MODELS = (
  (3, 1, '282.2M'),
  (13, 1, '785.8M'),
  (24, 2, '1.3B'),  # Of Tables 3 and 2, where no size is printed.
  (48, 2, '2.5B'),
  (103, 8, '5.3B'),
  (415, 32, '21.0B'),
  (1663, 128, '83.9B'),
)


class Table1Test(parameterized.TestCase):
  @parameterized.parameters(*_MODELS)
  def testSizes(self, num_layers, num_partitions, printed):
    params = registry.GetParams(f'lm.table1.TransformerL{num_layers}', 'Train')
    self.assertEqual(params.net.num_partitions, num_partitions)
    with mock.patch.object(tf, 'Variable', side_effect=AssertionError):
      task = params.Instantiate()
      specs = tf.nest.flatten(task.net.VariableSpecs())
      state = task.StateSpecs()
    count = sum(spec.size for spec in specs)
    self.assertEqual(count, num_layers * 50_358_272 + 131_104_000)
    unit = {'M': 1e6, 'B': 1e9}[printed[-1]]
    self.assertEqual(f'{count / unit:.1f}{printed[-1]}', printed)
    # RMSProp: 12 bytes for each parameter, with the weight itself.
    slots = sum(spec.num_bytes for spec in state.values())
    self.assertEqual(slots, 8 * count)

  def testPlanOf8Devices(self):
    placement.ConfigureLogicalCpus(8)
    params = registry.GetParams('lm.table1.TransformerL103', 'Train')
    batch_spec = params.input.Instantiate().BatchSpec()
    self.assertEqual(batch_spec.inputs.shape, (32, 1024))
    plan = params.Instantiate().Plan(batch_spec)
    blocks = [stage.end - stage.start for stage in plan.stages]
    self.assertEqual(sum(blocks), 103 + 2)
    self.assertBetween(min(blocks), 11, 13)
    self.assertBetween(max(blocks), 13, 16)

  def testNaive1HasNoPipeline(self):
    net = table1.TransformerL3().Model().net
    self.assertEqual((net.num_micro_batches, net.rematerialize), (1, 'none'))

  def testDataIsForTheUserToName(self):
    params = registry.GetParams('lm.table1.TransformerL3', 'Train')
    with self.assertRaisesRegex(user_error.UserError, 'set --data_dir'):
      params.input.Instantiate().Dataset()


if __name__ == '__main__':
  absltest.main()
