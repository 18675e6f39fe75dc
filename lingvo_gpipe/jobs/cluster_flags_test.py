"""Tests of cluster_flags."""

import json

from absl.testing import absltest, flagsaver, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import cluster_flags


def _TfConfig(kind='worker', index=0, **cluster):
  return json.dumps(
    {
      'cluster': cluster or {'worker': ['a:1', 'b:2'], 'chief': ['c:3']},
      'task': {'type': kind, 'index': index},
    }
  )


class TfConfigTest(parameterized.TestCase):
  @parameterized.parameters(
    ('worker', 1, 'worker', 1),
    ('chief', 0, 'trainer', None),
    ('evaluator', 0, 'evaler', None),
  )
  def testTasks(self, kind, index, job, task):
    self.assertEqual(
      cluster_flags.ReadTfConfig(_TfConfig(kind, index)),
      (('a:1', 'b:2'), job, task),
    )

  def testNoWorkers(self):
    for text in ('', '{}', _TfConfig('chief', chief=['c:3'])):
      self.assertEqual(cluster_flags.ReadTfConfig(text), ((), '', None))

  @parameterized.parameters(
    ('{', 'TF_CONFIG cannot be read'),
    ('[]', 'TF_CONFIG cannot be read'),
    (_TfConfig('ps'), "task of type 'ps' is none of"),
    (_TfConfig(worker=['a']), "TF_CONFIG: 'a' is no address"),
  )
  def testErrors(self, text, message):
    with self.assertRaisesRegex(user_error.UserError, message):
      cluster_flags.ReadTfConfig(text)


class FromFlagsTest(parameterized.TestCase):
  def testFlagsComeBeforeTheEnvironment(self):
    environ = {'TF_CONFIG': _TfConfig('worker', 1)}
    options, job = cluster_flags.FromFlags(0, environ)
    self.assertEqual(options.hosts, ('a:1', 'b:2'))
    self.assertEqual((job, options.task), ('worker', 1))
    with flagsaver.flagsaver(worker_hosts=['d:4', 'e:5', 'f:6']):
      options, job = cluster_flags.FromFlags(0, environ)
    self.assertEqual(options.hosts, ('d:4', 'e:5', 'f:6'))
    self.assertEqual((job, options.task), ('', None))
    options, job = cluster_flags.FromFlags(2, environ)
    self.assertEqual((options.hosts, job), ((), ''))

  def testTheOnlyWorkerNeedsNoNumber(self):
    with flagsaver.flagsaver(worker_hosts=['d:4']):
      self.assertEqual(cluster_flags.FromFlags(0, {})[0].task, 0)
    with flagsaver.flagsaver(worker_hosts=['d:4', 'e:5'], worker_task=1):
      self.assertEqual(cluster_flags.FromFlags(0, {})[0].task, 1)

  def testAskedForButNotThere(self):
    with flagsaver.flagsaver(cluster_resolver='tf_config'):
      with self.assertRaisesRegex(user_error.UserError, 'TF_CONFIG is not set'):
        cluster_flags.FromFlags(0, {})

  def testDevices(self):
    hosts = ('a:1', 'b:2')
    self.assertEqual(cluster_flags.ClusterOptions(hosts).num_devices, 2)
    self.assertEqual(cluster_flags.ClusterOptions(hosts, gpus=4).num_devices, 8)
    self.assertEqual(cluster_flags.ClusterOptions().num_devices, 0)

  @parameterized.parameters(
    ({'hosts': ('a',)}, 'trainer', "'a' is no address; write host:port"),
    ({'hosts': ('a:b',)}, 'trainer', 'is no address'),
    ({'hosts': ('a:70000',)}, 'trainer', 'is no address'),
    ({'hosts': ('a:1', 'a:1')}, 'trainer', 'a:1 comes twice'),
    ({}, 'worker', '--job=worker needs --worker_hosts'),
    (
      {'hosts': ('a:1', 'b:1')},
      'worker',
      '--worker_task is missing: .* 0 to 1',
    ),
    ({'gpus': 2}, 'trainer', 'use --run_locally=gpu'),
  )
  def testErrors(self, options, job, message):
    with self.assertRaisesRegex(user_error.UserError, message):
      cluster_flags.ClusterOptions(**options).Check(job)

  @parameterized.parameters(
    ({}, 'worker', 'tpu', 0, '--tpu=t is a flag of the trainer'),
    ({}, 'trainer', 'gpu', 0, '--tpu=t and --run_locally=gpu are different'),
    ({}, 'trainer', 'tpu', 2, '--tpu=t and --local_workers=2 say both'),
    ({'hosts': ('a:1',)}, 'evaler', 'tpu', 0, '--worker_hosts say both'),
    ({'resolver': 'slurm'}, 'trainer', 'tpu', 0, '--cluster_resolver=slurm'),
    ({'gpus': 2}, 'trainer', 'tpu', 0, '--worker_gpus=2 say both'),
  )
  def testTpuErrors(self, options, job, run_locally, local_workers, message):
    options = cluster_flags.ClusterOptions(tpu='t', **options)
    with self.assertRaisesRegex(user_error.UserError, message):
      options.CheckTpu(job, run_locally, local_workers)

  def testTpuComesBeforeTheEnvironment(self):
    environ = {'TF_CONFIG': _TfConfig('worker', 1)}
    for name in ('t', ''):
      with flagsaver.flagsaver(tpu=name):
        options, job = cluster_flags.FromFlags(0, environ)
      self.assertEqual((options.tpu, options.hosts, job), (name, (), ''))
      options.CheckTpu('trainer', 'tpu', 0)
    cluster_flags.ClusterOptions().CheckTpu('worker', 'cpu', 2)

  def testGood(self):
    hosts = ('a:1', '[::1]:2')
    cluster_flags.ClusterOptions(hosts, gpus=2).Check('trainer')
    cluster_flags.ClusterOptions(hosts, task=1).Check('worker')
    cluster_flags.ClusterOptions().Check('trainer')


if __name__ == '__main__':
  absltest.main()
