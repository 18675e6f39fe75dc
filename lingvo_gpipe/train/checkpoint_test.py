"""Tests for checkpoint."""

from __future__ import annotations

import json
import os
import resource
import shutil
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.train import (
  checkpoint,
  checkpoint_files,
  checkpoint_integrity,
  value_files,
)


def setUpModule():
  cpu = tf.config.list_physical_devices('CPU')[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
  )


def _Variables(value, devices=('CPU:0', 'CPU:1'), **extra):
  variables = {}
  for device, name in zip(devices, ('net/a/w', 'net/b/w'), strict=True):
    with tf.device(device):
      variables[name] = tf.Variable(tf.fill([3, 4], float(value)))
      variables[f'{name}/accum'] = tf.Variable(tf.fill([3, 4], -float(value)))
  variables['global_step'] = tf.Variable(value, dtype=tf.int64)
  return {**variables, **extra}


def _Values(variables):
  return {name: np.unique(v.numpy()).tolist() for name, v in variables.items()}


class _Killed(BaseException):
  """Stands for SIGKILL: nothing but the test catches it."""


class CheckpointTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.directory = os.path.join(self.create_tempdir().full_path, 'train')

  def _Checkpointer(self, variables, **kwargs):
    kwargs.setdefault('model', 'image.A')
    return checkpoint.Checkpointer(self.directory, variables, **kwargs)

  def _Prefix(self, step):
    return checkpoint_files.Prefix(self.directory, step)

  def _Steps(self):
    return [
      checkpoint_files.StepOf(c)
      for c in checkpoint_files.Checkpoints(self.directory)
    ]

  def testRoundTrip(self):
    saved = _Variables(5)
    saver = self._Checkpointer(saved)
    self.assertIsNone(saver.Latest())
    self.assertIsNone(saver.Restore())
    prefix = saver.Save(5, {'input_position': 40, 'best': [1.5, None]})
    self.assertEqual(prefix, self._Prefix(5))
    self.assertEqual(saver.Latest(), prefix)
    expected = {'input_position': 40, 'best': [1.5, None], 'global_step': 5}
    for path in (None, prefix, f'{prefix}.index', f'{prefix}.json'):
      restored = _Variables(0)
      metadata = self._Checkpointer(restored).Restore(path)
      self.assertEqual(metadata, expected)
      self.assertEqual(_Values(restored), _Values(saved))
    self.assertIsNone(self._Checkpointer({}).Best())

  def testOtherDevicesReadIt(self):
    """K=2 writes, K=1 and the reversed placement read."""
    saved = _Variables(5)
    self._Checkpointer(saved).Save(5)
    for devices in (('CPU:0', 'CPU:0'), ('CPU:1', 'CPU:0')):
      restored = _Variables(0, devices)
      self._Checkpointer(restored).Restore()
      self.assertEqual(_Values(restored), _Values(saved))
      self.assertEndsWith(restored['net/a/w'].device, devices[0])

  def testIoDevice(self):
    device = '/job:localhost/replica:0/task:0/device:CPU:0'
    self._Checkpointer(_Variables(5), io_device=device).Save(5)
    restored = _Variables(0)
    self._Checkpointer(restored, io_device=device).Restore()
    self.assertEqual(_Values(restored), _Values(_Variables(5)))

  def testFilesArePlainlyReadable(self):
    """With nothing but TensorFlow."""
    prefix = self._Checkpointer(_Variables(5)).Save(5)
    reader = tf.train.load_checkpoint(prefix)
    key = 'variables/net.Sa.Sw/.ATTRIBUTES/VARIABLE_VALUE'
    np.testing.assert_array_equal(reader.get_tensor(key), np.full((3, 4), 5.0))

  # Keeping and deleting.

  def testKeepsTheNewestAndTheBest(self):
    saver = self._Checkpointer(_Variables(0), max_to_keep=2)
    results = {1: 0.5, 2: 0.9, 3: float('nan'), 4: 0.7, 5: 0.9}
    best = []
    for step, value in results.items():
      saver.Save(step)
      best.append(saver.RecordMetric(step, value))
    self.assertEqual(best, [True, True, False, False, False])
    self.assertEqual(saver.Best(), self._Prefix(2))
    self.assertEqual(self._Steps(), [2, 4, 5])
    # A new process knows the best one, too.
    saver = self._Checkpointer(_Variables(0), max_to_keep=2)
    saver.Save(6)
    self.assertEqual(self._Steps(), [2, 5, 6])
    self.assertTrue(saver.RecordMetric(6, 0.95))
    saver.Save(7)
    self.assertEqual(self._Steps(), [6, 7])
    names = {name.split('.')[0] for name in os.listdir(self.directory)}
    self.assertEqual(names, {'ckpt-00000006', 'ckpt-00000007', 'best'})

  def testBestOfLosses(self):
    saver = self._Checkpointer(_Variables(0))
    for step, value in ((1, 3.0), (2, 2.0), (3, 2.5)):
      saver.Save(step)
      saver.RecordMetric(step, value, higher_is_better=False)
    self.assertEqual(saver.Best(), self._Prefix(2))
    checkpoint_files.Delete(self._Prefix(2))
    self.assertIsNone(saver.Best())
    self.assertTrue(saver.RecordMetric(3, 2.5, higher_is_better=False))

  def testBestOfAnotherMetricDoesNotCount(self):
    saver = self._Checkpointer(_Variables(0))
    for step in (1, 2):
      saver.Save(step)
    self.assertTrue(saver.RecordMetric(1, 0.9, metric='accuracy'))
    self.assertFalse(saver.RecordMetric(2, 0.8, metric='accuracy'))
    self.assertTrue(saver.RecordMetric(2, 0.8, metric='accuracy_top5'))
    self.assertEqual(saver.Best(), self._Prefix(2))

  def testKeepsAllOnDemand(self):
    saver = self._Checkpointer(_Variables(0), max_to_keep=0)
    for step in range(7):
      saver.Save(step)
    self.assertLen(self._Steps(), 7)

  def testKeepsEverySoManySteps(self):
    saver = self._Checkpointer(_Variables(0), max_to_keep=1, keep_every_steps=3)
    for step in range(1, 9):
      saver.Save(step)
    self.assertEqual(self._Steps(), [3, 6, 8])

  def testSnapshot(self):
    """Holds the old values whatever changes the variables."""
    variables = _Variables(5)
    saver = self._Checkpointer(variables)
    saver.TakeSnapshot()
    variables['net/a/w'].assign_add(tf.ones([3, 4]))
    variables['net/b/w'].assign(tf.zeros([3, 4]))
    variables['net/a/w/accum'].scatter_sub(
      tf.IndexedSlices(tf.ones([1, 4]), [1])
    )
    tf.raw_ops.ResourceApplyGradientDescent(
      var=variables['net/b/w/accum'].handle, alpha=1.0, delta=tf.ones([3, 4])
    )
    saver.SaveSnapshot(5)
    restored = _Variables(0)
    self._Checkpointer(restored).Restore()
    self.assertEqual(_Values(restored), _Values(_Variables(5)))

  # Crashes and full disks.

  @parameterized.product(
    step=[1, 2],
    call=[
      *[('replace', i) for i in range(4)],
      *[('unlink', i) for i in range(3)],
      ('rmdir', 0),
    ],
  )
  def testKilledWhileSaving(self, step, call):
    """At any change of the directory, in a new step or the same one again."""
    first = self._Checkpointer(_Variables(1), max_to_keep=1)
    first.Save(0)
    first.RecordMetric(0, 1.0)  # So that it is kept.
    first.Save(1)
    call, after = call
    original, calls = getattr(os, call), []

    def _Kill(*args, **kwargs):
      calls.append(args)
      if len(calls) > after:
        raise _Killed
      return original(*args, **kwargs)

    second = self._Checkpointer(_Variables(2), max_to_keep=1)
    with mock.patch.object(os, call, _Kill):
      with self.assertRaises(_Killed):
        second.Save(step)
    # What counts as complete is whole, and is one state or the other.
    steps = self._Steps()
    self.assertIn(0, steps)
    for found in steps:
      checkpoint_integrity.Verify(self._Prefix(found))
    restored = _Variables(0)
    metadata = self._Checkpointer(restored).Restore()
    self.assertEqual(metadata['global_step'], steps[-1])
    self.assertIn(
      _Values(restored), (_Values(_Variables(1)), _Values(_Variables(2)))
    )
    # The next run saves, and what the killed one left behind is gone.
    third = self._Checkpointer(_Variables(3), max_to_keep=1)
    third.Save(3)
    self.assertEqual(self._Steps(), [0, 3])
    names = {name.split('.')[0] for name in os.listdir(self.directory)}
    self.assertEqual(names, {'ckpt-00000000', 'ckpt-00000003', 'best'})

  def testPartialFilesAreNotACheckpoint(self):
    saver = self._Checkpointer(_Variables(1))
    saver.Save(1)
    prefix = saver.Save(2)
    os.unlink(f'{prefix}.json')
    os.truncate(f'{prefix}.data-00000-of-00001', 5)
    self.assertEqual(saver.Latest(), self._Prefix(1))
    self.assertEqual(saver.Restore()['global_step'], 1)
    with self.assertRaisesRegex(
      checkpoint.CheckpointError, 'no complete checkpoint .*ckpt-00000001'
    ):
      saver.Restore(prefix)

  def testDiskFull(self):
    big = tf.Variable(tf.zeros([300_000]))
    saver = self._Checkpointer(_Variables(1, big=big))
    saver.Save(1)
    before = sorted(os.listdir(self.directory))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
    try:
      with self.assertRaisesRegex(
        checkpoint.CheckpointError,
        f'^cannot save the checkpoint {self._Prefix(2)}: {self.directory}/.*'
        f'File too large; the newest complete one is {self._Prefix(1)}$',
      ):
        saver.Save(2)
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    self.assertEqual(sorted(os.listdir(self.directory)), before)
    saver.Save(2)
    checkpoint_integrity.Verify(self._Prefix(2))

  def testMetadataThatIsNotJsonLeavesNothing(self):
    saver = self._Checkpointer(_Variables(1))
    saver.Save(1, {'position': 1})
    with self.assertRaises(TypeError):
      saver.Save(1, {'position': object()})
    self.assertEqual(saver.Restore()['position'], 1)
    self.assertFalse([n for n in os.listdir(self.directory) if '.tmp' in n])

  def testALostWorkerIsNoMatterOfFiles(self):
    """Its error passes as it is, for whoever waits for workers."""
    saver = self._Checkpointer(_Variables(1))
    saver.Save(1)
    lost = tf.errors.UnavailableError(None, None, 'worker 1 is lost')
    calls = {'Write': lambda: saver.Save(2), 'Read': saver.Restore}
    for method, call in calls.items():
      with mock.patch.object(value_files.ValueFiles, method, side_effect=lost):
        with self.assertRaises(tf.errors.UnavailableError):
          call()
    self.assertLen(os.listdir(self.directory), 3)
    self.assertEqual(saver.Restore()['global_step'], 1)

  # Foreign and damaged checkpoints.

  def testAnotherModel(self):
    self._Checkpointer(_Variables(1), model='image.B').Save(1)
    others = {f'net/c/v{i}': tf.Variable([1.0]) for i in range(7)}
    ours = _Variables(2, **others)
    del ours['net/b/w/accum'], ours['global_step']
    ours['net/a/w'] = tf.Variable(tf.zeros([4, 4]))
    ours['net/b/w'] = tf.Variable(tf.zeros([3, 4], tf.bfloat16))
    with self.assertRaises(checkpoint.MismatchError) as caught:
      self._Checkpointer(ours).Restore()
    self.assertEqual(
      str(caught.exception),
      f"checkpoint {self._Prefix(1)} is of model 'image.B', but this is "
      "'image.A': 2 variables differ: net/a/w (there float32 [3, 4], here "
      'float32 [4, 4]), net/b/w (there float32 [3, 4], here bfloat16 [3, 4]); '
      '7 variables are missing in it: net/c/v0 (float32 [1]), net/c/v1 '
      '(float32 [1]), net/c/v2 (float32 [1]) and 4 more; 2 variables are '
      'unknown here: global_step (int64 []), net/b/w/accum (float32 [3, 4]). '
      'Choose another directory (--logdir), or run the model that wrote it',
    )
    self.assertEqual(_Values(ours)['net/a/w/accum'], [-2.0])

  def testEvaluationNeedsNoSlots(self):
    self._Checkpointer(_Variables(1)).Save(1)
    ours = {k: v for k, v in _Variables(0).items() if 'accum' not in k}
    reader = self._Checkpointer(ours)
    with self.assertRaisesRegex(
      checkpoint.MismatchError, '2 variables are unknown here: net/a/w/accum'
    ):
      reader.Restore()
    self.assertEqual(reader.Restore(ignore_unused=True)['global_step'], 1)
    self.assertEqual(_Values(ours)['net/a/w'], [1.0])
    ours['net/new'] = tf.Variable(1.0)
    with self.assertRaisesRegex(checkpoint.MismatchError, 'missing.*net/new'):
      self._Checkpointer(ours).Restore(ignore_unused=True)

  @parameterized.parameters('truncated', 'flipped')
  def testDamagedData(self, how):
    saver = self._Checkpointer(_Variables(1))
    saver.Save(1)
    path = f'{saver.Save(2)}.data-00000-of-00001'
    with open(path, 'r+b') as f:
      content = bytearray(f.read())
      content[30] ^= 4
      f.seek(0)
      f.write(content)
    if how == 'truncated':
      os.truncate(path, 20)
    with self.assertRaisesRegex(
      checkpoint.CorruptError,
      f'damaged, in {path}: .*the newest good one is {self._Prefix(1)}',
    ):
      saver.Restore()
    self.assertEqual(saver.Restore(self._Prefix(1))['global_step'], 1)
    self.assertEqual(_Values(saver._variables), _Values(_Variables(1)))
    # Training on from there replaces the damaged one.
    saver.Save(2)
    self.assertEqual(saver.Restore()['global_step'], 2)

  def testNothingIsExecuted(self):
    """Metadata that looks like code comes back as text."""
    saver = self._Checkpointer(_Variables(1))
    text = "__import__('os').abort()"
    saver.Save(1, {'input_position': text})
    self.assertEqual(saver.Restore()['input_position'], text)

  # Directories.

  def testCheckWritable(self):
    checkpoint.CheckWritable(self.directory)
    self.assertEqual(os.listdir(self.directory), [])
    with open(os.path.join(self.directory, 'file'), 'w') as f:
      f.write('in the way')
    for bad in ('/proc/nothing', os.path.join(self.directory, 'file', 'logs')):
      with self.assertRaisesRegex(
        checkpoint.CheckpointError, f'cannot write to the directory {bad}: '
      ):
        checkpoint.CheckWritable(bad)

  def testDirectoryThatVanishesIsMadeAgain(self):
    saver = self._Checkpointer(_Variables(1))
    saver.Save(1)
    shutil.rmtree(self.directory)
    saver.Save(2)
    self.assertEqual(self._Steps(), [2])
    with open(f'{self._Prefix(2)}.json') as f:
      self.assertEqual(json.load(f)['model'], 'image.A')

  def testOneVariableWithTwoNames(self):
    shared = tf.Variable(1.0)
    with self.assertRaisesRegex(ValueError, "'a' and 'b' are the same"):
      self._Checkpointer({'a': shared, 'b': shared})


if __name__ == '__main__':
  absltest.main()
