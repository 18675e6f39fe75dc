"""Tests of inspect_model, through the trainer's modes."""

import contextlib
import io
import json
import os
import resource
import time

from absl.testing import absltest

from lingvo_gpipe import trainer, trainer_process
from lingvo_gpipe.jobs import flags

_MODELS = trainer_process.MODELS


def _Run(**options):
  """Lines of stdout."""
  stdout = io.StringIO()
  with contextlib.redirect_stdout(stdout):
    assert trainer.Run(flags.Options(**options)) == 0
  return stdout.getvalue().splitlines()


class InspectModelTest(absltest.TestCase):
  def testModel(self):
    logdir = os.path.join(self.create_tempdir().full_path, 'new')
    lines = _Run(
      mode='inspect_model',
      model=f'{_MODELS}.Tiny',
      num_partitions=2,
      run_locally='gpu',  # Which need not be there.
      logdir=logdir,
    )
    self.assertEqual(
      lines[:5],
      [
        'variable             shape  dtype    partition',
        'tiny/net/first/b     4      float32  0',
        'tiny/net/first/w     4x4    float32  0',
        'tiny/net/norm/gamma  4      float32  0',
        'tiny/net/norm/mean   4      float32  0          not trainable',
      ],
    )
    self.assertIn('tiny/net/classify/w  4x3    float32  1', lines)
    self.assertIn('/device:GPU:1', '\n'.join(lines))
    self.assertEqual(lines[-1], 'total parameters: 59')

    self.assertEqual(os.listdir(logdir), ['model_analysis.json'])
    with open(os.path.join(logdir, 'model_analysis.json')) as f:
      analysis = json.load(f)
    self.assertEqual(analysis['model'], f'{_MODELS}.Tiny')
    self.assertEqual(analysis['total_parameters'], 59)
    self.assertEqual(analysis['other_parameters'], 4)
    self.assertEqual(analysis['weight_bytes'], 4 * 63)
    self.assertEqual(analysis['slot_bytes'], 4 * 59)  # Momentum's.
    self.assertEqual(
      analysis['variables'][0],
      {
        'path': 'tiny/net/first/b',
        'shape': [4],
        'dtype': 'float32',
        'trainable': True,
        'partition': 0,
      },
    )
    self.assertEqual(analysis['plan']['num_partitions'], 2)

  def testSixBillionParametersTakeNoMemory(self):
    _Run(mode='inspect_model', model=f'{_MODELS}.Tiny')  # Warms up.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    lines = _Run(
      mode='inspect_model', model=f'{_MODELS}.Giant', num_partitions=4
    )
    seconds = time.monotonic() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    self.assertEqual(lines[-1], 'total parameters: 6,250,450,003')
    self.assertLess(seconds, 20)
    self.assertLess(kilobytes, 100 * 1024)

  def testParams(self):
    lines = _Run(
      mode='inspect_params',
      model=f'{_MODELS}.Tiny',
      num_partitions=2,
      model_params_override='train.learner.learning_rate=0.5',
    )
    self.assertIn("name : 'tiny'", lines)
    self.assertIn('net.num_partitions : 2', lines)
    self.assertIn('train.learner.learning_rate : 0.5', lines)
    self.assertIn("net.cells[0].name : 'first'", lines)

  def testListOfModels(self):
    lines = _Run(mode='list_models', imports=(_MODELS,))
    self.assertIn(
      f'{_MODELS}.Tiny  Four cells with dropout and batch norm; a step takes a '
      'millisecond.',
      lines,
    )


if __name__ == '__main__':
  absltest.main()
