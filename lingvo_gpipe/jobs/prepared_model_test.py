"""Tests of prepared_model."""

import contextlib
import io
import json
import os
from unittest import mock

import numpy as np
from absl.testing import absltest

from lingvo_gpipe import cluster, trainer_process, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import (
  cluster_flags,
  flags,
  model_loader,
  prepared_model,
  progress,
)
from lingvo_gpipe.jobs import logdir as logdir_lib

_TINY = f'{trainer_process.MODELS}.Tiny'
_WIDE = f'{trainer_process.MODELS}.Wide'


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class PreparedModelTest(absltest.TestCase):
  def _Prepare(self, logdir=None, **options):
    logdir = logdir or self.create_tempdir().full_path
    options = flags.Options(**{'model': _TINY, 'logdir': logdir, **options})
    model = model_loader.Load(options)
    self.output = io.StringIO()
    with contextlib.redirect_stdout(self.output):
      prepared = prepared_model.PreparedModel(
        options, model, logdir_lib.LogDir(logdir), None
      )
      prepared.restored = prepared.RestoreOrInit()
    return prepared

  def _Saved(self):
    """A log directory with a checkpoint of step 5, and its weights."""
    other = self._Prepare(model_params_override='random_seed=7')
    other.checkpointer.Save(5, {'train_seconds': 1.0})
    return other.logdir.path, self._Weights(other)

  def _Weights(self, prepared):
    return {k: v.numpy() for k, v in prepared.task.weights.items()}

  def testPrintsThePlan(self):
    prepared = self._Prepare(num_partitions=2)
    self.assertIsNone(prepared.restored)
    lines = self.output.getvalue().splitlines()
    self.assertEqual(lines[2], 'devices /device:CPU:0, /device:CPU:1')
    self.assertStartsWith(lines[-1], '59 trainable and 4 other parameters')

  def testATpuOfThatName(self):
    # Its cores are played by processors.
    cores = cluster.Cluster('tpu', ('/device:CPU:1', '/device:CPU:0'))
    with mock.patch.object(cluster, 'Tpus', return_value=cores) as tpus:
      prepared = self._Prepare(
        num_partitions=2,
        run_locally='tpu',
        cluster=cluster_flags.ClusterOptions(
          tpu='t', trainer_address='h', wait=7.0
        ),
      )
    tpus.assert_called_once_with(
      't', 2, 1, client='h', wait_seconds=7.0, show=progress.Show
    )
    self.assertSequenceEqual(prepared.task.net.plan.devices, cores.devices)
    with mock.patch.object(cluster, 'Tpus', side_effect=ValueError('--tpu=t')):
      with self.assertRaisesRegex(user_error.UserError, '^--tpu=t$'):
        self._Prepare(
          run_locally='tpu', cluster=cluster_flags.ClusterOptions(tpu='t')
        )

  def testStartsFromAnotherRun(self):
    other, expected = self._Saved()
    random = self._Weights(self._Prepare())
    init = {
      'init_checkpoint': other,
      'model_params_override': 'train.init_from.exclude=["classify/w"]',
    }
    prepared = self._Prepare(num_partitions=2, **init)
    self.assertIsNone(prepared.restored)
    self.assertRegex(
      self.output.getvalue(),
      r'\n7 variables start from .*/ckpt-00000005 \(model .*Tiny, step 5\); 1 '
      'stay random: tiny/net/classify/w\n$',
    )
    for path, value in self._Weights(prepared).items():
      source = random if path.endswith('classify/w') else expected
      np.testing.assert_array_equal(value, source[path], path)
    # A run that has a checkpoint of its own goes on from that.
    prepared.task.net.cells[0].vars.b.assign([7.0] * 4)
    prepared.checkpointer.Save(9)
    again = self._Prepare(prepared.logdir.path, **init)
    self.assertEqual(again.restored['global_step'], 9)
    np.testing.assert_array_equal(again.task.net.cells[0].vars.b, [7.0] * 4)
    self.assertIn(
      f'{other} (train.init_from) is not read: the run has ',
      self.output.getvalue(),
    )

  def testWhatDoesNotFitComesOutBeforeThePlan(self):
    other, unused = self._Saved()
    with self.assertRaisesRegex(
      user_error.UserError,
      r'2 have another shape or dtype: \S+classify/b .*train.init_from.exclude '
      r"to start at random, as in \['tiny/net/classify/.\*'\]",
    ):
      self._Prepare(model=_WIDE, init_checkpoint=other)
    self.assertEqual(self.output.getvalue(), '')

  def testEvalersDoNotStartFromAnotherRun(self):
    other, unused = self._Saved()
    prepared = self._Prepare(job='evaler', init_checkpoint=other)
    self.assertNotIn('start from', self.output.getvalue())
    self.assertIsNone(prepared.restored)

  def testResults(self):
    prepared = self._Prepare()
    metrics = {'dev': {'loss': 0.5}, 'test': {'loss': 0.25, 'accuracy': 0.75}}
    prepared.WriteResults(30, 1.5, metrics)
    with open(os.path.join(prepared.logdir.path, 'results.json')) as f:
      results = json.load(f)
    self.assertGreater(results.pop('wall_seconds'), 0)
    self.assertRegex(results.pop('source'), r'models.py:\d+$')
    self.assertEqual(
      results,
      {
        'model': _TINY,
        'global_step': 30,
        'total_parameters': 59,
        'num_partitions': 1,
        'num_replicas': 1,
        'num_micro_batches': 4,
        'train_seconds': 1.5,
        'test_accuracy': 0.75,
        **metrics,
      },
    )
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout):
      prepared_model.ShowResults(metrics)
    self.assertEqual(
      stdout.getvalue(),
      'dev loss: 0.5000\ntest loss: 0.2500\ntest accuracy: 0.7500\n',
    )


if __name__ == '__main__':
  absltest.main()
