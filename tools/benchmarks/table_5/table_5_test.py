"""Tests of the tool: what a training gave, and its picture."""

import json
import os
import subprocess
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import user_error
from tools.benchmarks import report, tool_process
from tools.benchmarks.paper import output, published
from tools.benchmarks.table_5 import picture, runs


class RunsTest(absltest.TestCase):
  def testTrain(self):
    logdir = self.create_tempdir().full_path
    commands = []

    def _Trainer(command, **unused_kwargs):
      commands.append(command)
      results = {
        'global_step': 7,
        'train_seconds': 3.5,
        'test': {'loss': 4.0, 'log_pplx': 3.25, 'chrf': 20.5, 'bleu': 9.5},
      }
      with open(os.path.join(logdir, 'results.json'), 'w') as f:
        json.dump(results, f)
      return subprocess.CompletedProcess(command, 0)

    with mock.patch.object(subprocess, 'run', _Trainer):
      row = runs.Train(
        'mt.django.Small',
        4096,
        7,
        logdir,
        override='decoder.beam_size=1',
        args=['--local_workers=2'],
      )
    self.assertEqual(
      row,
      {
        'tokens': 4096,
        'steps': 7,
        'seconds': 3.5,
        'nll': 3.25,
        'chrf': 20.5,
        'bleu': 9.5,
      },
    )
    (command,) = commands
    self.assertContainsSubset(
      [
        '--model=mt.django.Small',
        '--max_steps=7',
        '--model_params_override=input.batch_tokens=4096;decoder.beam_size=1',
        '--local_workers=2',
      ],
      command,
    )

  def testFailure(self):
    with self.assertRaisesRegex(user_error.UserError, 'ended with status 2'):
      runs.Train('no.Such', 32, 2, '', override='', args=[])


class PictureTest(absltest.TestCase):
  def testDraw(self):
    columns = [report.Column('tokens', 'tokens')]
    rows = [
      {'tokens': 1024 * 4**i, 'nll': 3.0 - i, 'chrf': 20.0 + i}
      for i in range(3)
    ]
    paper = [size._asdict() for size in published.BATCH_SIZES]
    figure = picture.Draw(
      [
        output.Section('paper', '', columns, paper),
        output.Section('measured', '', columns, rows),
      ]
    )
    # Each panel has the loss on the left and the score on the right.
    self.assertLen(figure.axes, 4)
    labels = {axes.get_ylabel() for axes in figure.axes}
    self.assertEqual(labels, {'nats per token', 'BLEU', 'chrF'})


class ToolTest(absltest.TestCase):
  def testMistakes(self):
    result = tool_process.Run('table_5', '--batch_tokens=0')
    self.assertEqual(result.returncode, 2)
    self.assertIn('batch_tokens', result.stderr)


if __name__ == '__main__':
  absltest.main()
