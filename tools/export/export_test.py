"""Tests of the command, on a short AmoebaNet for digits."""

import contextlib
import io
import json
import os
import subprocess
import sys

import numpy as np
import tensorflow as tf
from absl.testing import flagsaver, parameterized

from lingvo_gpipe import child_process, registry, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.train import checkpoint
from params.image import digits
from tools.export import __main__ as export

_MODEL = f'{__name__}.ShortDigits'
_CELL_CHANNELS = 96

# Run without this project on the path: argv is a model, a file with pixels, and
# a place for the logits.
_LOADER = """
import sys
import numpy as np
import tensorflow as tf

path, pixels, outputs = sys.argv[1:]
pixels, signatures = np.load(pixels), tf.saved_model.load(path).signatures
logits = {}
for size in (1, 5):
  images = tf.constant((pixels[:size] / 255).astype(np.float32))
  contents = tf.stack([tf.io.encode_png(x) for x in pixels[:size]])
  outputs_of = {
    'serving_default': signatures['serving_default'](images=images),
    'image_bytes': signatures['image_bytes'](image_bytes=contents),
  }
  for name, values in outputs_of.items():
    logits[f'{name} {size}'] = values['logits'].numpy()
    assert (values['classes'] == tf.argmax(values['logits'], 1)).numpy().all()
np.savez(outputs, **logits)
"""


@registry.RegisterSingleTaskModel
class ShortDigits(digits.AmoebaNetDigits):
  """The stem, a cell and the head."""

  def Task(self):
    p = super().Task()
    stem, cell, *unused, head = p.net.cells
    p.net.cells = [stem, cell, head.Set(input_dim=_CELL_CHANNELS)]
    return p


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Run(folder, *args, path=True):
  environment = child_process.Environment()
  if not path:
    del environment['PYTHONPATH']
  return subprocess.run(
    [sys.executable, *args],
    cwd=folder,
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )


class ExportTest(tf.test.TestCase, parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path

  def _Save(self):
    """A run of two partitions whose weights, moments and averages differ."""
    params = registry.GetParams(_MODEL, 'Dev')
    params.SetPath('train.ema.decay', 0.9)
    params.SetPath('net.num_partitions', 2)
    task = params.Instantiate()
    spec = params.input.Instantiate().BatchSpec()
    task.Plan(spec, ['/device:CPU:0', '/device:CPU:1'])
    task.InstantiateVariables()
    variables = task.variables_for_checkpoint
    for i, variable in enumerate(variables.values()):
      if variable.dtype.is_floating:
        noise = tf.random.stateless_uniform(variable.shape, (i, 1), 0.8, 1.2)
        variable.assign(variable * noise + 0.02 * noise)
    directory = os.path.join(self._folder, 'run', 'train')
    checkpoint.Checkpointer(directory, variables, model=_MODEL).Save(40)
    return task, spec

  def testExports(self):
    task, spec = self._Save()
    output = os.path.join(self._folder, 'model')
    stdout = io.StringIO()
    with flagsaver.flagsaver(
      model=_MODEL,
      logdir=os.path.join(self._folder, 'run'),
      output=output,
      model_params_override='train.ema.decay=0.9',
    ):
      with contextlib.redirect_stdout(stdout):
        self.assertEqual(export.Main(), 0)
    outputs = (
      'logits float32 [?, 10], probabilities float32 [?, 10], classes int64 [?]'
    )
    self.assertEqual(
      stdout.getvalue().splitlines(),
      [
        f'wrote {output}: {_MODEL}, step 40, averaged weights',
        f'serving_default: images float32 [?, 8, 8, 1] -> {outputs}',
        f'image_bytes: image_bytes string [?] -> {outputs}',
      ],
    )
    assets = os.path.join(output, 'assets')
    with open(os.path.join(assets, 'classes.txt')) as f:
      self.assertEqual(f.read().split(), list('0123456789'))
    with open(os.path.join(assets, 'model.json')) as f:
      self.assertEqual(json.load(f)['input_shape'], [8, 8, 1])

    pixels = np.random.default_rng(5).integers(0, 256, [64, 8, 8, 1], np.uint8)
    np.save(os.path.join(self._folder, 'pixels.npy'), pixels[:5])
    done = _Run(
      self._folder, '-c', _LOADER, 'model', 'pixels.npy', 'out.npz', path=False
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    found = np.load(os.path.join(self._folder, 'out.npz'))
    self.assertLen(found.files, 4)
    batch = tf.nest.map_structure(lambda x: tf.zeros(x.shape, x.dtype), spec)
    batch.inputs = tf.constant((pixels / 255).astype(np.float32))
    theta = task.net.ThetaFrom(task.ema.Averages(task.net.vars))
    logits = tf.function(task.net.FProp, autograph=False)(theta, batch).logits
    self.assertGreater(np.ptp(logits), 0.1)
    for name in found.files:
      size = int(name.split()[1])
      self.assertAllClose(
        found[name], logits[:size], rtol=1e-5, atol=1e-5, msg=name
      )

  @parameterized.named_parameters(
    ('NoModel', {'logdir': 'x', 'output': 'y'}, '--model is missing'),
    ('NoLogDir', {'model': _MODEL, 'output': 'y'}, '--logdir is missing'),
    ('NoOutput', {'model': _MODEL, 'logdir': 'x'}, '--output is missing'),
    (
      'NoCheckpoint',
      {'model': _MODEL, 'logdir': '/none/run', 'output': 'y'},
      '/none/run/train holds no checkpoint to export.* --logdir of a run',
    ),
    (
      'OtherCheckpoint',
      {'model': _MODEL, 'checkpoint': '/none/ckpt-00000001', 'output': 'y'},
      'no complete checkpoint /none/ckpt-00000001',
    ),
    (
      'UnknownModel',
      {'model': 'image.digits.AmobaNet', 'logdir': 'x', 'output': 'y'},
      'no model is called',
    ),
    (
      'NotEmpty',
      {'model': _MODEL, 'checkpoint': '/none/ckpt-00000001', 'output': '/proc'},
      '--output=/proc is not empty.*--overwrite',
    ),
  )
  def testMistakes(self, flags, problem):
    with flagsaver.flagsaver(**flags):
      with self.assertRaisesRegex(user_error.UserError, problem):
        export.Main()

  def testHelpNeedsNoTensorFlow(self):
    code = (
      'import runpy, sys; sys.modules["tensorflow"] = None; '
      'sys.argv = ["export", "--help"]; '
      'runpy.run_module("tools.export", run_name="__main__", alter_sys=True)'
    )
    done = _Run(self._folder, '-c', code)
    self.assertEqual(done.returncode, 0, done.stderr)
    for flag in ('--model', '--logdir', '--output', '--[no]overwrite'):
      self.assertIn(f'{flag}:', done.stdout)


if __name__ == '__main__':
  tf.test.main()
