"""Tests of flags."""

import dataclasses
from unittest import mock

from absl import flags as absl_flags
from absl.testing import absltest, flagsaver

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  cluster_flags,
  eval_flags,
  flags,
  operation_flags,
)


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
          '--worker_replicas=2',
          '--local_workers=4',
          '--worker_memory=1.5G',
          '--timeline',
          '--num_micro_batches=16',
          '--profile_cells',
          '--model_params_override=x=1; y=2',
          '--import=c.d,e',
          '--max_steps=7',
          '--saver_max_to_keep=2',
          '--saver_keep_every_steps=50',
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
          '--worker_hosts=h:1,h:2',
          '--worker_task=1',
          '--cluster_resolver=slurm',
          '--worker_label=a=b',
          '--worker_port=9',
          '--worker_gpus=3',
          '--worker_threads=2',
          '--worker_listen=network',
          '--trainer_address=t:5',
          '--worker_wait=6',
          '--worker_lost_seconds=8',
          '--worker_restarts=4',
          '--tpu=t',
          '--watchdog_seconds=5',
          '--profile_steps=1:2',
          '--log_format=json',
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
      num_replicas=2,
      local_workers=4,
      worker_memory='1.5G',
      timeline=True,
      num_micro_batches=16,
      profile_cells=True,
      model_params_override='x=1; y=2',
      imports=('c.d', 'e'),
      max_steps=7,
      save_max_to_keep=2,
      save_keep_every_steps=50,
      eval_at_end=False,
      decode_at_end=False,
      data_dir='/d',
      download=True,
      init_checkpoint='/i',
      evaluation=eval_flags.EvalOptions(
        once=True, all=True, checkpoint='/c', timeout=1.5, predictions='/p'
      ),
      cluster=cluster_flags.ClusterOptions(
        hosts=('h:1', 'h:2'),
        task=1,
        resolver='slurm',
        label='a=b',
        port=9,
        gpus=3,
        threads=2,
        listen='network',
        trainer_address='t:5',
        wait=6.0,
        lost_seconds=8.0,
        restarts=4,
        tpu='t',
      ),
      operation=operation_flags.OperationOptions(5.0, '1:2', 'json'),
    )
    self.assertEqual(options, expected)
    # No flag was left out above: each field differs from its default.
    for given, defaults in (
      (options, flags.Options()),
      (options.evaluation, eval_flags.EvalOptions()),
      (options.cluster, cluster_flags.ClusterOptions()),
      (options.operation, operation_flags.OperationOptions()),
    ):
      for field in dataclasses.fields(defaults):
        self.assertNotEqual(
          getattr(given, field.name), getattr(defaults, field.name), field.name
        )

  def testDefaultsOfOptionsAreThoseOfFlags(self):
    with flagsaver.flagsaver(model='m', logdir='/l'):
      self.assertEqual(flags.FromFlags(), flags.Options(model='m', logdir='/l'))

  def testProfiledSteps(self):
    options = operation_flags.OperationOptions(profile_steps='10:3')
    self.assertEqual(options.ProfiledSteps(), range(10, 13))
    self.assertEmpty(operation_flags.OperationOptions().ProfiledSteps())
    for text in ('10', '10:0', 'a:b', '1:-2'):
      with self.assertRaisesRegex(user_error.UserError, 'is not FIRST:COUNT'):
        flags.Options(
          mode='list_models',
          operation=operation_flags.OperationOptions(profile_steps=text),
        ).Check()

  def testWorkersAreSharedOutAmongReplicas(self):
    def _Check(**kwargs):
      flags.Options(model='m', logdir='/l', local_workers=4, **kwargs).Check()

    _Check(num_replicas=2)
    _Check(num_replicas=2, num_partitions=2)
    with self.assertRaisesRegex(
      user_error.UserError, 'size=4 times --worker_replicas=2 .*workers=4 '
    ):
      _Check(num_replicas=2, num_partitions=4)
    with self.assertRaisesRegex(
      user_error.UserError, 'shared out among --worker_replicas=3'
    ):
      _Check(num_replicas=3)

  def testKindsOfWorkersDoNotMix(self):
    cluster = cluster_flags.ClusterOptions(hosts=('h:1', 'h:2'))
    base = {'model': 'm', 'logdir': '/l', 'cluster': cluster}
    flags.Options(**base).Check()
    self.assertEqual(flags.Options(**base).num_worker_devices, 2)
    with self.assertRaisesRegex(user_error.UserError, 'two kinds of workers'):
      flags.Options(**base, local_workers=2).Check()
    with self.assertRaisesRegex(
      user_error.UserError, 'devices of this machine'
    ):
      flags.Options(**base, run_locally='gpu').Check()

  def testAWorkerNeedsNoModel(self):
    hosts = ('h:1', 'h:2')
    flags.Options(
      job='worker',
      worker_memory='2G',
      cluster=cluster_flags.ClusterOptions(hosts, task=1),
    ).Check()
    with self.assertRaisesRegex(user_error.UserError, '--worker_task is missi'):
      flags.Options(
        job='worker', cluster=cluster_flags.ClusterOptions(hosts)
      ).Check()

  def testATpuIsWhatPartitionsRunOn(self):
    def _Parse(*args):
      with flagsaver.flagsaver():
        absl_flags.FLAGS(['trainer', '--model=m', '--logdir=/l', *args])
        return flags.FromFlags()

    for name in ('my-tpu', ''):
      options = _Parse(f'--tpu={name}')
      self.assertEqual(options.run_locally, 'tpu')
      self.assertEqual(options.cluster.tpu, name)
    self.assertEqual(_Parse('--tpu=t', '--run_locally=tpu').cluster.tpu, 't')
    self.assertIsNone(_Parse('--run_locally=tpu').cluster.tpu)
    for other in ('--run_locally=cpu', '--local_workers=2'):
      with self.assertRaisesRegex(
        user_error.UserError, f'^--tpu=t and {other} '
      ):
        _Parse('--tpu=t', other)

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
