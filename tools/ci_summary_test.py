"""Tests of ci_summary."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import textwrap

from absl.testing import absltest

from tools import ci_summary

# A real test program, so that the XML is what absltest really writes.
_PROGRAM = textwrap.dedent(
  """
  import unittest
  from absl.testing import absltest, parameterized

  class SomeTest(parameterized.TestCase):
    @parameterized.parameters(1, 2, 3)
    def testThree(self, x):
      self.assertLess(x, 3)

    def testError(self):
      raise KeyError('gone')

    @unittest.skip('not here')
    def testSkipped(self):
      pass

  class NoSetUpTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
      raise ValueError('no set-up')

    def testNever(self):
      pass

  absltest.main()
  """
)

# What Bazel writes for a program that wrote no XML, as on a time-out.
_BAZEL_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="x" tests="1" failures="0" errors="{errors}">
<testcase name="x" status="run" duration="5" time="5">{error}</testcase>
</testsuite></testsuites>"""

_PASSED = _BAZEL_XML.format(errors=0, error='')
_FAILED = _BAZEL_XML.format(
  errors=1, error='<error message="exited with error code 142"></error>'
)


class CountCasesTest(absltest.TestCase):
  def testAbsltest(self):
    program = self.create_tempfile('some_test.py', _PROGRAM).full_path
    path = f'{program}.xml'
    subprocess.run(
      [sys.executable, program],
      env={'PATH': os.environ['PATH'], 'XML_OUTPUT_FILE': path},
      capture_output=True,
      check=False,
    )
    counts = ci_summary.CountCases(pathlib.Path(path).read_text(), '//a:b')
    self.assertEqual((counts.passed, counts.failed, counts.skipped), (2, 3, 1))
    self.assertLen(counts.failures, 3)
    self.assertIn("//a:b: __main__.SomeTest.testError: 'gone'", counts.failures)

  def testBazelsOwn(self):
    counts = ci_summary.CountCases(_FAILED, '//a:b')
    self.assertEqual((counts.passed, counts.failed), (0, 1))
    self.assertEqual(ci_summary.CountCases(_PASSED, '//a:b').passed, 1)

  def testCutOff(self):
    counts = ci_summary.CountCases(_PASSED[:80], '//a:b')
    self.assertEqual((counts.passed, counts.failed), (0, 0))


class CountRunTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._temp = self.create_tempdir()
    self._events = []

  def _Target(self, label: str, is_test: bool = True) -> None:
    configured = {
      'targetKind': 'x',
      **({'testSize': 'SMALL'} if is_test else {}),
    }
    self._events.append(
      {'id': {'targetConfigured': {'label': label}}, 'configured': configured}
    )

  def _Result(self, label, status, xml, shard=1, attempt=1) -> None:
    # A space in the path, as Bazel writes it into a URI.
    path = f'a b/{len(self._events)}/test.xml'
    uri = f'file://{self._temp.full_path}/{path.replace(" ", "%20")}'
    if xml is not None:
      self._temp.create_file(path, content=xml)
    self._events.append(
      {
        'id': {
          'testResult': {
            'label': label,
            'run': 1,
            'shard': shard,
            'attempt': attempt,
          }
        },
        'testResult': {
          'status': status,
          'testActionOutput': [
            {'name': 'test.log', 'uri': 'file:///x'},
            {'name': 'test.xml', 'uri': uri},
          ],
        },
      }
    )

  def _Count(self, bazel_status: int) -> tuple[int, int]:
    counts = ci_summary.CountRun(map(json.dumps, self._events), bazel_status)
    self.assertLen(counts.failures, counts.failed)
    return counts.passed, counts.failed

  def testSumsTargetsAndShards(self):
    self._Target('//:a')
    self._Result('//:a', 'PASSED', _PASSED, shard=1)
    self._Result('//:a', 'PASSED', _PASSED, shard=2)
    self._Target('//:b')
    self._Result('//:b', 'FAILED', _FAILED)
    self.assertEqual(self._Count(3), (2, 1))

  def testLastAttemptCounts(self):
    self._Result('//:a', 'PASSED', _PASSED, attempt=2)
    self._Result('//:a', 'FAILED', _FAILED, attempt=1)
    self.assertEqual(self._Count(0), (1, 0))

  def testFailureAfterTheLastCase(self):
    self._Result('//:a', 'FAILED', _PASSED)
    self.assertEqual(self._Count(3), (1, 1))

  def testTimeoutWithoutXml(self):
    self._Result('//:a', 'TIMEOUT', None)
    self.assertEqual(self._Count(3), (0, 1))

  def testTestThatWasNotBuilt(self):
    self._Target('//:a')
    self._Target('//:library', is_test=False)
    self.assertEqual(self._Count(1), (0, 1))

  def testBuildFailureWithoutTests(self):
    self._Target('//:a')
    self._Result('//:a', 'PASSED', _PASSED)
    self.assertEqual(self._Count(1), (1, 1))

  def testNoEvents(self):
    self.assertEqual(self._Count(36), (0, 1))

  def testCutOffEvents(self):
    self._Result('//:a', 'PASSED', _PASSED)
    lines = [json.dumps(self._events[0]), '{"id": {"testResult"']
    counts = ci_summary.CountRun(lines, 0)
    self.assertEqual((counts.passed, counts.failed), (1, 0))


class MainTest(absltest.TestCase):
  def _Main(self, *args) -> tuple[int, list[str]]:
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
      status = ci_summary.main(list(args))
    return status, stdout.getvalue().splitlines()

  def testLastLineAndStatus(self):
    events = self.create_tempfile(content='').full_path
    status, lines = self._Main('--bazel_status=0', events)
    self.assertEqual((status, lines), (0, ['0 passed, 0 failed']))

  def testBazelDidNotStart(self):
    status, lines = self._Main('--bazel_status=36', '/nonexistent/events')
    self.assertEqual(status, 36)
    self.assertEqual(lines[-1], '0 passed, 1 failed')
    self.assertIn('Bazel ended with status 36', lines[0])


if __name__ == '__main__':
  absltest.main()
