"""Tests of flags."""

import dataclasses
from unittest import mock

from absl import flags as absl_flags
from absl.testing import absltest, flagsaver

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import eval_flags, flags


class FlagsTest(absltest.TestCase):
  def testOptionsAreTheFlags(self):
    with flagsaver.flagsaver():
      absl_flags.FLAGS(
        [
          'trainer',
          '--model=a.B',
          '--logdir=/l',
          '--mode=inspect_model',
          '--job=evaler',
          '--run_locally=tpu',
          '--worker_split_size=4',
          '--local_workers=4',
          '--worker_memory=1.5G',
          '--timeline',
          '--num_micro_batches=16',
          '--profile_cells',
          '--model_params_override=x=1; y=2',
          '--import=c.d,e',
          '--max_steps=7',
          '--saver_max_to_keep=2',
          '--noeval_at_end',
          '--data_dir=/d',
          '--download',
          '--init_checkpoint=/i',
          '--eval_once',
          '--eval_all',
          '--checkpoint=/c',
          '--eval_timeout=1.5',
          '--predictions=/p',
          '--nodecode_at_end',
        ]
      )
      # Some of them do not go together.
      with mock.patch.object(flags.Options, 'Check'):
        options = flags.FromFlags()
    expected = flags.Options(
      model='a.B',
      logdir='/l',
      mode='inspect_model',
      job='evaler',
      run_locally='tpu',
      num_partitions=4,
      local_workers=4,
      worker_memory='1.5G',
      timeline=True,
      num_micro_batches=16,
      profile_cells=True,
      model_params_override='x=1; y=2',
      imports=('c.d', 'e'),
      max_steps=7,
      save_max_to_keep=2,
      eval_at_end=False,
      decode_at_end=False,
      data_dir='/d',
      download=True,
      init_checkpoint='/i',
      evaluation=eval_flags.EvalOptions(
        once=True, all=True, checkpoint='/c', timeout=1.5, predictions='/p'
      ),
    )
    self.assertEqual(options, expected)
    # No flag was left out above: each field differs from its default.
    for given, defaults in (
      (options, flags.Options()),
      (options.evaluation, eval_flags.EvalOptions()),
    ):
      for field in dataclasses.fields(defaults):
        self.assertNotEqual(
          getattr(given, field.name), getattr(defaults, field.name), field.name
        )

  def testDefaultsOfOptionsAreThoseOfFlags(self):
    with flagsaver.flagsaver(model='m', logdir='/l'):
      self.assertEqual(flags.FromFlags(), flags.Options(model='m', logdir='/l'))

  def testWhatTheModesNeed(self):
    flags.Options(mode='list_models').Check()
    flags.Options(mode='inspect_params', model='m').Check()
    flags.Options(mode='inspect_model', model='m').Check()
    with self.assertRaisesRegex(user_error.UserError, '^--model is missing'):
      flags.Options(mode='inspect_model').Check()
    with self.assertRaisesRegex(user_error.UserError, '^--logdir is missing'):
      flags.Options(model='m').Check()

  def testWorkers(self):
    def _Options(**options):
      return flags.Options(model='m', logdir='/l', **options)

    _Options(local_workers=2).Check()
    _Options(local_workers=2, num_partitions=2).Check()
    limited = _Options(local_workers=2, worker_memory='1.5G')
    limited.Check()
    self.assertEqual(limited.memory_limit, 3 * 2**29)
    self.assertIsNone(_Options().memory_limit)
    for bad in (
      {'local_workers': 2, 'num_partitions': 3},
      {'local_workers': 2, 'run_locally': 'gpu'},
      {'local_workers': 2, 'worker_memory': 'much'},
      {'worker_memory': '1G'},
    ):
      with self.assertRaisesRegex(
        user_error.UserError, '--(local_workers|worker_memory)'
      ):
        _Options(**bad).Check()


if __name__ == '__main__':
  absltest.main()
