"""Tests of log_lines."""

import contextlib
import datetime
import io
import json
import logging

from absl.testing import absltest, parameterized

from lingvo_gpipe import log_lines


def _Shown(show, *args):
  """(stdout, stderr) of show(*args)."""
  stdout, stderr = io.StringIO(), io.StringIO()
  with (
    contextlib.redirect_stdout(stdout),
    contextlib.redirect_stderr(stderr),
  ):
    show(*args)
  return stdout.getvalue(), stderr.getvalue()


class LogLinesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.addCleanup(log_lines.SetFormat, 'text')

  def _Json(self, show, *args):
    """The record that show(*args) prints to stdout, without its time."""
    log_lines.SetFormat('json')
    stdout, stderr = _Shown(show, *args)
    self.assertEqual((stdout.count('\n'), stdout[-1], stderr), (1, '\n', ''))
    record = json.loads(stdout)
    time = datetime.datetime.fromisoformat(record.pop('time'))
    self.assertEqual(time.utcoffset(), datetime.timedelta(0))
    age = datetime.datetime.now(datetime.UTC) - time
    self.assertLess(abs(age.total_seconds()), 60)
    return record

  def testText(self):
    line = log_lines.Line('loss 1', {'loss': 1.0})
    self.assertEqual(line, 'loss 1')
    self.assertEqual(_Shown(log_lines.Show, line), ('loss 1\n', ''))
    self.assertEqual(_Shown(log_lines.Show, ''), ('\n', ''))

  @parameterized.parameters(
    ('restored x', 'INFO'),
    ('warning: full', 'WARNING'),
    ('no step has ended for 5m: a test', 'WARNING'),
    ('error: gone', 'ERROR'),
    ('a table\n| of "two" lines', 'INFO'),
    ('\u00fc', 'INFO'),
  )
  def testSeverity(self, line, severity):
    self.assertEqual(
      self._Json(log_lines.Show, line),
      {'severity': severity, 'message': line},
    )

  def testValues(self):
    values = {'loss': float('nan'), 'step': 3, 'rate': 0.5, 'message': 'mine'}
    self.assertEqual(
      self._Json(log_lines.Show, log_lines.Line('x', values)),
      {
        'severity': 'INFO',
        'message': 'x',
        'loss': None,
        'step': 3,
        'rate': 0.5,
      },
    )

  def testEmptyLinesAreForPeople(self):
    log_lines.SetFormat('json')
    self.assertEqual(_Shown(log_lines.Show, ''), ('', ''))

  def testFault(self):
    try:
      raise KeyError('k')
    except KeyError as e:
      fault = e
    stdout, text = _Shown(log_lines.ShowFault, fault)
    self.assertEqual(stdout, '')
    self.assertRegex(text, r"^Traceback(.*\n)+KeyError: 'k'\n$")
    log_lines.SetFormat('json')
    record = json.loads(_Shown(log_lines.ShowFault, fault)[1])
    self.assertEqual(record['severity'], 'ERROR')
    self.assertEqual(record['message'], text.rstrip())

  def testLogging(self):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log_lines.JsonFormatter())
    logger = logging.Logger('of this test')
    logger.addHandler(handler)
    logger.warning('%d of\n2', 1)
    record = json.loads(stream.getvalue())
    self.assertEqual(record['severity'], 'WARNING')
    self.assertEqual(record['message'], '1 of\n2')


if __name__ == '__main__':
  absltest.main()
