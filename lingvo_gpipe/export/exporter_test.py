"""Tests of exporter: what was trained is what TensorFlow alone then loads."""

import collections
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from tensorflow.core.protobuf import saved_model_pb2

from lingvo_gpipe import (
  base_model_params,
  nested_map,
  registry,
  trainer,
  trainer_test_models,
  user_error,
)
from lingvo_gpipe.export import exporter, serving_signature
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, model_loader
from lingvo_gpipe.train import checkpoint

_MODELS = 'lingvo_gpipe.trainer_test_models'
_EMA = 'train.ema.decay=0.9; train.ema.ramp=False'

# Run without this project on the path: argv is points, a place for the outputs,
# and models.
_LOADER = """
import sys
import numpy as np
import tensorflow as tf

points, outputs, *paths = sys.argv[1:]
points, values = np.load(points), {}
for path in paths:
  function = tf.saved_model.load(path).signatures['serving_default']
  for size in (1, 5):
    found = function(points=tf.constant(points[:size]))
    values.update(
      {f'{path} {size} {name}': x.numpy() for name, x in found.items()}
    )
np.savez(outputs, **values)
print(sorted(m for m in sys.modules if m.startswith('lingvo_gpipe')))
"""


class _Points(trainer_test_models.Points):
  """Points that can be served; class names are given by a param."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('class_names', ['x', 'y', ' the\nlast '], 'Names.')
    return p

  def ServingSignatures(self):
    return {
      'serving_default': serving_signature.ServingSignature(
        tf.TensorSpec([None, 4], tf.float32, 'points'),
        lambda points: {'inputs': points},
        lambda outputs: {
          'logits': outputs.logits,
          'probabilities': tf.nn.softmax(outputs.logits),
        },
      )
    }

  def ClassNames(self):
    if self.params.class_names is None:
      raise user_error.UserError('the data is not there')
    return self.params.class_names


class _Classify(trainer_test_models.Classify):
  """Returns the logits in evaluation."""

  def FProp(self, theta, inputs, batch):
    outputs = super().FProp(theta, inputs, batch)
    if self.do_eval:
      outputs.logits = inputs @ theta.w + theta.b
    return outputs


@registry.RegisterSingleTaskModel
class Served(trainer_test_models.Tiny):
  """Tiny with an input that can be served, and no test data."""

  Test = base_model_params.SingleTaskModelParams.Test

  def Train(self):
    return _Points.Params().Set(training=True)

  def Dev(self):
    return _Points.Params()

  def Task(self):
    p = super().Task()
    p.net.cells[-1] = _Classify.Params().Set(
      name='classify', input_dim=4, output_dim=3
    )
    return p


class _MixedPoints(_Points):
  """Training mini-batches have a field more."""

  def BatchSpec(self):
    spec = super().BatchSpec()
    if self.params.training:
      spec.mix = spec.weights
    return spec


class _ClassifyMixed(_Classify):
  BATCH_FIELDS = ('labels', 'weights', 'mix')


@registry.RegisterSingleTaskModel
class Mixed(Served):
  """Served, with a field of the batch that evaluation does not have."""

  def Train(self):
    return _MixedPoints.Params().Set(training=True)

  def Task(self):
    p = super().Task()
    p.net.cells[-1] = _ClassifyMixed.Params().Set(
      name='classify', input_dim=4, output_dim=3
    )
    return p


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Load(override='', model=f'{__name__}.Served'):
  return model_loader.Load(
    flags.Options(model=model, model_params_override=override)
  )


def _Restored(model, prefix, *, ignore_unused=False):
  """The task with a checkpoint's variables, as the trainer has it."""
  task = model.Instantiate()
  spec = model.eval_inputs['dev'].Instantiate().BatchSpec()
  task.Plan(spec, ['/device:CPU:0'])
  task.InstantiateVariables()
  checkpoint.Checkpointer(
    os.path.dirname(prefix), task.variables_for_checkpoint, model=model.name
  ).Restore(prefix, ignore_unused=ignore_unused)
  return task


class ExporterTest(tf.test.TestCase):
  @classmethod
  def setUpClass(cls):
    """Trains with two partitions and averages; also saves it without them."""
    super().setUpClass()
    folder = cls.enter_context(tempfile.TemporaryDirectory())
    options = flags.Options(
      model=f'{__name__}.Served',
      logdir=folder,
      num_partitions=2,
      max_steps=5,
      eval_at_end=False,
      model_params_override=_EMA,
    )
    with contextlib.redirect_stdout(io.StringIO()):
      trainer.Run(options)
    cls._averaged = os.path.join(folder, 'train', 'ckpt-00000005')
    task = _Restored(_Load(), cls._averaged, ignore_unused=True)
    cls._plain = checkpoint.Checkpointer(
      os.path.join(folder, 'plain'),
      task.variables_for_checkpoint,
      model=f'{__name__}.Served',
    ).Save(5)

  def _Output(self):
    return os.path.join(self.create_tempdir().full_path, 'model')

  def _EvalLogits(self, model, prefix, points):
    """What the task itself computes in evaluation."""
    task = _Restored(model, prefix)
    zeros = tf.zeros([len(points)])
    batch = nested_map.NestedMap(
      inputs=tf.constant(points), labels=tf.cast(zeros, tf.int32), weights=zeros
    )
    theta = task.net.ThetaFrom(task.ema.Averages(task.net.vars))
    return task.net.FProp(theta, batch).logits.numpy()

  def _Loaded(self, paths, points):
    """What a process without this project computes: {(path, size): outputs}."""
    folder = self.create_tempdir().full_path
    files = [os.path.join(folder, x) for x in ('points.npy', 'outputs.npz')]
    np.save(files[0], points)
    done = subprocess.run(
      [sys.executable, '-c', _LOADER, *files, *paths],
      cwd=folder,
      env={x: y for x, y in os.environ.items() if x != 'PYTHONPATH'},
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEqual(done.stdout, '[]\n')
    values = np.load(files[1])
    return {
      (path, size): {
        name: values[f'{path} {size} {name}']
        for name in ('logits', 'probabilities')
      }
      for path in paths
      for size in (1, 5)
    }

  def testEqualsEvaluation(self):
    points = np.random.default_rng(3).normal(size=[5, 4]).astype(np.float32)
    logits = {}
    for override, prefix in (('', self._plain), (_EMA, self._averaged)):
      model = _Load(override)
      output = self._Output()
      info = exporter.Export(model, prefix=prefix, output=output)
      self.assertEqual(info['averaged_weights'], bool(override))
      logits[output] = self._EvalLogits(model, prefix, points)
    loaded = self._Loaded(list(logits), points)
    for path, expected in logits.items():
      for size in (1, 5):
        found = loaded[path, size]
        self.assertAllClose(
          found['logits'], expected[:size], rtol=1e-5, atol=1e-5
        )
        self.assertAllClose(found['probabilities'].sum(1), np.ones(size))
    plain, averaged = logits.values()
    self.assertGreater(np.abs(plain - averaged).max(), 1e-2)

  def testFiles(self):
    output = self._Output()
    model = _Load()
    exporter.Export(model, prefix=self._plain, output=output)
    with open(os.path.join(output, 'assets', 'classes.txt')) as f:
      self.assertEqual(f.read(), 'x\ny\nthe last\n')
    with open(os.path.join(output, 'assets', 'model.json')) as f:
      info = json.load(f)
    self.assertEqual(info['model'], f'{__name__}.Served')
    self.assertEqual(info['global_step'], 5)
    self.assertEqual(info['input_shape'], [4])
    logits = {'shape': [None, 3], 'dtype': 'float32'}
    self.assertEqual(
      info['signatures'],
      {
        'serving_default': {
          'inputs': {'points': {'shape': [None, 4], 'dtype': 'float32'}},
          'outputs': {'logits': logits, 'probabilities': logits},
        }
      },
    )
    params = model.params.Copy()
    params.train.max_steps = 1
    self.assertEqual(params.FromText(info['params']), model.params)

  def testNoDevices(self):
    output = self._Output()
    exporter.Export(_Load(), prefix=self._plain, output=output)
    model = saved_model_pb2.SavedModel()
    with open(os.path.join(output, 'saved_model.pb'), 'rb') as f:
      model.ParseFromString(f.read())
    (graph,) = (x.graph_def for x in model.meta_graphs)
    devices = collections.defaultdict(set)
    for function in graph.library.function:
      devices[function.signature.name].update(
        node.device for node in function.node_def
      )
    # TensorFlow's own saving and restoring is done on any host.
    for name, found in devices.items():
      if 'traced_save' not in name and 'traced_restore' not in name:
        self.assertEqual(found, {''}, name)
    every = {''}.union(*devices.values(), (x.device for x in graph.node))
    self.assertEmpty([x for x in every if 'job' in x or 'task' in x])

  def testNamesThatNobodyKnows(self):
    output = self._Output()
    with self.assertLogs(level='WARNING') as logs:
      exporter.Export(
        _Load('input.class_names=None'), prefix=self._plain, output=output
      )
    self.assertIn('the data is not there', logs.output[0])
    self.assertEqual(os.listdir(os.path.join(output, 'assets')), ['model.json'])

  def testFieldsOfTrainingOnly(self):
    found = []
    for name in ('Served', 'Mixed'):
      output = self._Output()
      model = _Load(model=f'{__name__}.{name}')
      exporter.Export(model, prefix=self._plain, output=output)
      function = tf.saved_model.load(output).signatures['serving_default']
      found.append(function(points=tf.ones([2, 4]))['logits'])
    self.assertAllEqual(*found)

  def testMistakes(self):
    plain, averaged = self._plain, self._averaged
    for model, prefix, problem in (
      (
        _Load(model=f'{_MODELS}.Tiny'),
        plain,
        'Points has no ServingSignatures',
      ),
      (_Load(), plain[:-1] + '6', 'no complete checkpoint .*ckpt-00000005'),
      (_Load('net.cells[0].name="other"'), plain, r'net/other.*\(--logdir\)'),
      (_Load(_EMA), plain, 'missing in it: .*/ema'),
      (_Load(), averaged, 'has averages of the weights.*train.ema.decay'),
      (_Load('input.class_names=["a", "b"]'), plain, '3 prob.* 2 classes'),
    ):
      output = self._Output()
      with self.assertRaisesRegex(user_error.UserError, problem):
        exporter.Export(model, prefix=prefix, output=output)
      self.assertFalse(os.path.exists(output))


if __name__ == '__main__':
  absltest.main()
