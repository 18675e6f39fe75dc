"""Tests of graceful_stop."""

import signal

from absl.testing import absltest, parameterized

from lingvo_gpipe.jobs import graceful_stop


class GracefulStopTest(parameterized.TestCase):
  @parameterized.parameters((signal.SIGTERM, 143), (signal.SIGINT, 130))
  def testNotesTheSignal(self, number, status):
    with graceful_stop.GracefulStop() as stop:
      self.assertFalse(stop.requested)
      self.assertEqual((stop.signal_name, stop.exit_status), ('', 0))
      signal.raise_signal(number)
      self.assertTrue(stop.requested)
    self.assertEqual(stop.signal_name, number.name)
    self.assertEqual(stop.exit_status, status)

  def testSecondSigintAborts(self):
    with graceful_stop.GracefulStop() as stop:
      signal.raise_signal(signal.SIGINT)
      with self.assertRaises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    self.assertEqual(stop.exit_status, 130)

  def testPutsTheHandlersBack(self):
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    with self.assertRaises(ZeroDivisionError):
      with graceful_stop.GracefulStop():
        raise ZeroDivisionError
    after = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    self.assertEqual(before, after)


if __name__ == '__main__':
  absltest.main()
