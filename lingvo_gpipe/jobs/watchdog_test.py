"""Tests of watchdog."""

import itertools
import threading
import time

from absl.testing import absltest

from lingvo_gpipe.jobs import watchdog


class WatchdogTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._lines = []
    self._told = threading.Event()

  def _Show(self, line):
    self._lines.append(line)
    self._told.set()

  def _HangingFunction(self, seconds):
    self._told.wait(seconds)

  def testTellsWhatAndWhere(self):
    seconds = itertools.chain([0.1, 0.3], itertools.repeat(0.5))

    def _Activity():
      return 'waiting for input', next(seconds)

    with watchdog.Watchdog(0.2, _Activity, self._Show):
      self._HangingFunction(60.0)
      self.assertTrue(self._told.is_set())
      time.sleep(0.1)
    # Once; then not before twice as long.
    self.assertLen(self._lines, 1)
    self.assertRegex(
      self._lines[0],
      r'^no step has ended for \d+s: waiting for input, at .*'
      r'watchdog_test.py:\d+ _HangingFunction$',
    )

  def testProgressKeepsItQuiet(self):
    with watchdog.Watchdog(0.1, lambda: ('computing', 0.05), self._Show):
      time.sleep(0.5)
    self.assertEmpty(self._lines)

  def testSwitchedOff(self):
    before = threading.active_count()
    with watchdog.Watchdog(0.0, lambda: ('computing', 1e9), self._Show):
      self.assertEqual(threading.active_count(), before)


if __name__ == '__main__':
  absltest.main()
