"""Tests of show."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from absl.testing import absltest

from lingvo_gpipe import child_process
from lingvo_gpipe.gpipe.timelines import simulated_times
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def setUpModule():
  # Matplotlib warns where the home directory cannot be written to.
  os.environ['MPLCONFIGDIR'] = tempfile.mkdtemp()


class ShowTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.create_tempdir().full_path)
    timeline = timeline_lib.FromTimes(
      simulated_times.Uniform('1f1b', 2, 4),
      devices=simulated_times.Workers(2),
      schedule='1f1b',
      policies='partition',
      model='a.Model',
    )
    path = self._folder / 'timeline.json'
    path.write_text(json.dumps(timeline.ToJson()))

  def _Show(self, *args):
    return subprocess.run(
      [sys.executable, '-P', '-m', 'tools.timeline.show', *args],
      capture_output=True,
      text=True,
      check=False,
      # As `bazel run` does it: relative paths begin there.
      env=child_process.Environment(BUILD_WORKING_DIRECTORY=str(self._folder)),
    )

  def testWritesAll(self):
    done = self._Show(
      '--timeline=timeline.json',
      '--picture=step.png',
      f'--trace={self._folder / "trace.json"}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    heading = done.stdout.splitlines()[0]
    self.assertEqual(
      heading,
      'a.Model, 2 partitions, 4 micro-batches, schedule 1f1b, rematerialize '
      'partition',
    )
    self.assertStartsWith(
      (self._folder / 'step.png').read_bytes(), b'\x89PNG\r\n'
    )
    trace = json.loads((self._folder / 'trace.json').read_text())
    passes = [e for e in trace['traceEvents'] if e['ph'] == 'X']
    # F and B of both partitions, R of the first.
    self.assertLen(passes, 4 * 5)

  def testPrintsOnly(self):
    done = self._Show('--timeline=timeline.json')
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('Bubble: measured', done.stdout)
    self.assertEqual(os.listdir(self._folder), ['timeline.json'])

  def testMistakes(self):
    (self._folder / 'other.json').write_text('{"format": "another"}')
    (self._folder / 'broken.json').write_text('{')
    for args, message in (
      ([], '--timeline is missing'),
      (['--timeline=none.json'], '--timeline=none.json: '),
      (['--timeline=broken.json'], '--timeline=broken.json: Expecting'),
      (['--timeline=other.json'], 'this is no recorded timeline'),
      (['--timeline=timeline.json', '--picture=no/x.png'], 'no/x.png'),
    ):
      done = self._Show(*args)
      self.assertEqual(done.returncode, 2, (args, done.stderr))
      self.assertStartsWith(done.stderr.splitlines()[-1], 'error: ')
      self.assertIn(message, done.stderr)
      self.assertLen(done.stderr.splitlines(), 1)


if __name__ == '__main__':
  absltest.main()
