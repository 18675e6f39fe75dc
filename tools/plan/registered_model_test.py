"""Tests for registered_model."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import flags
from tools.plan import registered_model


class LoadTest(parameterized.TestCase):
  def testPipelineOfTheParamsDoesNotMatter(self):
    model = registered_model.Load(
      flags.Options(
        model='lm.small.TransformerSmall',
        model_params_override='net.splits=[2,6];net.rematerialize=cell+none',
      )
    )
    self.assertEqual(model.divisible, model.batch_size)
    self.assertLen(model.state_sizes, model.num_cells)

  def testBatchSize(self):
    options = flags.Options(model='lm.table1.TransformerL3')
    self.assertEqual(registered_model.Load(options).batch_size, 32)
    self.assertEqual(registered_model.Load(options, 6).batch_size, 6)

  def testBuckets(self):
    model = registered_model.Load(
      flags.Options(
        model='mt.multilingual.T64x16384x32',
        model_params_override='input.batch_tokens=6144',
      )
    )
    # 384, 192, 96 and 64 sentences of 16, 32, 64 and 128 (multiples of 32).
    self.assertEqual((model.batch_size, model.divisible), (32, 32))

  @parameterized.parameters(
    ('lm.table1.Nobody', 0, 'Nobody'),
    ('mt.multilingual.T64x16384x32', 7, '--batch_size=7.*input.batch_tokens'),
  )
  def testErrors(self, name, batch_size, message):
    with self.assertRaisesRegex(user_error.UserError, message):
      registered_model.Load(flags.Options(model=name), batch_size)


if __name__ == '__main__':
  absltest.main()
