"""What collectors of logs read: --log_format=json of all jobs, and errors."""

import json
import os
import signal
from unittest import mock

from absl.testing import absltest, parameterized

from lingvo_gpipe import (
  log_lines,
  trainer_in_process,
  trainer_process,
  user_error,
)
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import checkpoint_follower, run_job
from lingvo_gpipe.workers import free_ports

_JSON = '--log_format=json'


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Parse(text):
  """The records of lines, each of which has the fields that all have."""
  records = [json.loads(line) for line in text.splitlines()]
  for record in records:
    assert list(record)[:3] == ['time', 'severity', 'message'], record
  return records


def _Main(*args):
  """(exit status, records of stdout, records of stderr)."""
  status, stdout, stderr = trainer_in_process.Main(*args)
  return status, _Parse(stdout), _Parse(stderr)


class TrainerLogTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.addCleanup(log_lines.SetFormat, 'text')
    logdir = os.path.join(self.create_tempdir().full_path, 'logdir')
    self._run = [
      f'--model={trainer_process.MODELS}.Named',
      f'--logdir={logdir}',
      '--max_steps=20',
    ]

  def testJobs(self):
    status, stdout, stderr = _Main(*self._run, _JSON)
    self.assertEqual((status, stderr), (0, []))
    self.assertEqual({x['severity'] for x in stdout}, {'INFO'})
    steps = [x for x in stdout if 'max_steps' in x]
    self.assertEqual([x['step'] for x in steps], [10, 20])
    for record in steps:
      self.assertStartsWith(record['message'], f'step {record["step"]}/20 loss')
      self.assertEqual(record['learning_rate'], 0.1)
      self.assertEqual(record['skipped_steps'], 0)
      self.assertGreater(record['loss'], 0.0)
      self.assertGreater(record['examples_per_second'], 0.0)
    self.assertGreater(steps[0]['seconds_left'], 0.0)
    self.assertStartsWith(stdout[-1]['message'], 'test accuracy: ')
    accuracy = stdout[-1]['accuracy']
    status, stdout, stderr = _Main(*self._run, _JSON, '--job=evaler,decoder')
    self.assertEqual((status, stderr), (0, []))
    evaluated = [x for x in stdout if 'examples_per_second' in x]
    self.assertEqual(
      [(x['step'], x['dataset']) for x in evaluated],
      [(20, 'dev'), (20, 'test'), (20, 'test')],
    )
    self.assertEqual(evaluated[1]['accuracy'], accuracy)
    self.assertEqual(evaluated[2]['named'], accuracy)

  def testWorker(self):
    port = free_ports.FreePorts(1)[0]
    process = trainer_process.Start(
      _JSON, '--job=worker', f'--worker_hosts=localhost:{port}'
    )
    self.addCleanup(process.kill)
    shown = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    rest, stderr = process.communicate()
    self.assertEqual((process.returncode, stderr), (143, ''))
    records = _Parse(shown + rest)
    self.assertLen(records, 2)
    self.assertStartsWith(records[0]['message'], 'worker 0 of 1 listens at ')
    self.assertEqual(records[1]['message'], 'worker 0 of 1 stopped by SIGTERM')

  @parameterized.parameters(
    # Also where a flag before it is wrong, or an unknown one.
    (['--run_locally=npu', _JSON], '--run_locally=npu'),
    (['--modle', 'x', _JSON], "'modle'"),
    ([_JSON], '--model is missing'),
    ([_JSON, '--model=x', '--logdir=x', '--job=trainer,evalor'], "'evalor'"),
  )
  def testWrongCommands(self, args, message):
    status, stdout, stderr = _Main(*args)
    self.assertEqual((status, stdout), (2, []))
    self.assertLen(stderr, 1)
    self.assertEqual(stderr[0]['severity'], 'ERROR')
    self.assertStartsWith(stderr[0]['message'], 'error: ')
    self.assertIn(message, stderr[0]['message'])

  @parameterized.parameters(
    (user_error.TrainingError('too bad'), 'error: too bad'),
    (KeyboardInterrupt(), 'error: aborted; earlier checkpoints stay'),
    (ValueError('a fault'), 'Traceback '),
  )
  def testWhatEndsAJob(self, error, message):
    with mock.patch.object(run_job, 'Run', side_effect=error):
      status, stdout, stderr = _Main(*self._run, _JSON)
    self.assertEqual((status != 0, stdout), (True, []))
    self.assertLen(stderr, 1)
    self.assertEqual(stderr[0]['severity'], 'ERROR')
    self.assertStartsWith(stderr[0]['message'], message)

  def testTextAfterJson(self):
    _Main(_JSON)
    with self.assertRaises(json.JSONDecodeError):
      _Main()
    # A format that is none is said in text, too.
    with self.assertRaises(json.JSONDecodeError):
      _Main('--log_format=yaml')

  def testFaultsInText(self):
    with mock.patch.object(
      checkpoint_follower, 'CheckThereIsWork', side_effect=ValueError('a fault')
    ):
      with self.assertRaisesRegex(ValueError, 'a fault'):
        _Main(*self._run, '--job=evaler')


if __name__ == '__main__':
  absltest.main()
