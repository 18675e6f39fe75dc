"""Tests of cluster_resolvers, in made-up clusters."""

import os
import urllib.request
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.workers import cluster_resolvers

_STEP = {
  'SLURM_STEP_NUM_TASKS': '5',
  'SLURM_STEP_NODELIST': 'node[1-2]',
  'SLURM_STEP_TASKS_PER_NODE': '3,2',
}
_HOSTS = ('node1:8471', 'node1:8472', 'node2:8470', 'node2:8471')


class SlurmTest(parameterized.TestCase):
  def _Find(self, **environ):
    with mock.patch.dict(os.environ, environ):
      return cluster_resolvers.Slurm(8470)

  @parameterized.parameters(
    ('0', 'trainer', None), ('1', 'worker', 0), ('4', 'worker', 3)
  )
  def testTasks(self, rank, job, task):
    found = self._Find(**_STEP, SLURM_PROCID=rank)
    self.assertEqual(found, (_HOSTS, job, task))

  def testNoStep(self):
    with self.assertRaisesRegex(user_error.UserError, 'start it by srun'):
      self._Find()

  def testTooFew(self):
    with self.assertRaisesRegex(user_error.UserError, 'it needs two at least'):
      self._Find(**_STEP | {'SLURM_STEP_NUM_TASKS': '1', 'SLURM_PROCID': '0'})

  def testNonsense(self):
    with self.assertRaisesRegex(user_error.UserError, '^--cluster_resolver=sl'):
      self._Find(
        **_STEP | {'SLURM_STEP_TASKS_PER_NODE': '(x', 'SLURM_PROCID': '0'}
      )


class KubernetesTest(absltest.TestCase):
  def _Client(self, *pods):
    items = [
      mock.Mock(
        status=mock.Mock(phase=phase, host_ip=address, pod_ip=address),
        metadata=mock.Mock(),
      )
      for address, phase in pods
    ]
    for item, (address, _) in zip(items, pods, strict=True):
      item.metadata.name = address
    client = mock.Mock()
    client.list_pod_for_all_namespaces.return_value = mock.Mock(items=items)
    return client

  def testPods(self):
    client = self._Client(('10.0.0.2', 'Running'), ('10.0.0.1', 'Running'))
    found = cluster_resolvers.Kubernetes('app=w', 99, client)
    self.assertEqual(found, (('10.0.0.1:99', '10.0.0.2:99'), '', None))
    _, kwargs = client.list_pod_for_all_namespaces.call_args
    self.assertEqual(kwargs['label_selector'], 'app=w')

  def testNoPods(self):
    with self.assertRaisesRegex(user_error.UserError, 'no running pod with'):
      cluster_resolvers.Kubernetes('app=w', 99, self._Client())

  def testPodsThatDoNotRun(self):
    with self.assertRaisesRegex(user_error.UserError, r'\(--worker_label\): '):
      cluster_resolvers.Kubernetes(
        'app=w', 99, self._Client(('10.0.0.2', 'Pending'))
      )

  def testWithoutThePackage(self):
    with mock.patch.dict('sys.modules', {'kubernetes': None}):
      with self.assertRaisesRegex(user_error.UserError, 'pip install kubern'):
        cluster_resolvers.Kubernetes('app=w', 99)


class TpuTest(parameterized.TestCase):
  def testAddresses(self):
    resolver = cluster_resolvers.Tpu('grpc://10.0.0.2:8470,grpc://10.0.0.1:99')
    self.assertEqual(
      resolver.cluster_spec().as_dict(),
      {'worker': ['10.0.0.2:8470', '10.0.0.1:99']},
    )
    resolver = cluster_resolvers.Tpu('grpc://10.0.0.2', '10.0.0.9:7')
    self.assertEqual(
      resolver.cluster_spec().as_dict(),
      {'worker': ['10.0.0.2:8470'], 'client': ['10.0.0.9:7']},
    )

  def testThisMachine(self):
    resolver = cluster_resolvers.Tpu('local')
    self.assertEqual(resolver.cluster_spec().as_dict(), {})

  def testTheEnvironmentKnowsTheName(self):
    with mock.patch.dict(os.environ, {'TPU_NAME': 'grpc://10.0.0.3:8470'}):
      resolver = cluster_resolvers.Tpu('')
    self.assertEqual(
      resolver.cluster_spec().as_dict(), {'worker': ['10.0.0.3:8470']}
    )

  @parameterized.parameters('', 'my-tpu')
  def testUnknownName(self, name):
    with mock.patch.object(
      urllib.request, 'urlopen', side_effect=OSError('no such host')
    ):
      with self.assertRaisesRegex(
        user_error.UserError,
        rf'^--tpu={name}: no TPU of this name is found \(.*(no such host|'
        r'provide a TPU Name).*\); give the name of a Cloud TPU',
      ):
        cluster_resolvers.Tpu(name)

  def testATpuThatIsNotReady(self):
    with mock.patch.object(
      tf.distribute.cluster_resolver, 'TPUClusterResolver'
    ) as resolver:
      resolver.return_value.cluster_spec.side_effect = RuntimeError(
        'TPU "my-tpu" is not yet ready; state: "CREATING"'
      )
      with self.assertRaisesRegex(
        user_error.UserError, '^--tpu=my-tpu: .* not yet ready; state'
      ):
        cluster_resolvers.Tpu('my-tpu')


if __name__ == '__main__':
  absltest.main()
