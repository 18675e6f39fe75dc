"""Tests of process_memory."""

import os
import subprocess
import sys

from absl.testing import absltest, parameterized

from lingvo_gpipe.workers import process_memory

_MIB = 2**20
# The kernel adds up what the threads have touched only now and then.
_SLACK = _MIB


class ProcessMemoryTest(parameterized.TestCase):
  def testPeakStaysUntilItIsReset(self):
    pid = os.getpid()
    before = process_memory.Read(pid)
    self.assertGreaterEqual(before.peak, before.current - _SLACK)
    block = b'x' * (64 * _MIB)
    during = process_memory.Read(pid)
    self.assertGreater(during.current, before.current + 60 * _MIB)
    self.assertGreaterEqual(during.peak, during.current - _SLACK)
    del block
    after = process_memory.Read(pid)
    self.assertLess(after.current, during.current - 60 * _MIB)
    self.assertGreaterEqual(after.peak, during.current - _SLACK)
    process_memory.ResetPeak(pid)
    reset = process_memory.Read(pid)
    self.assertLess(reset.peak, during.current - 60 * _MIB)

  def testParse(self):
    text = 'Name:\tpython\nVmHWM:\t  12 kB\nVmRSS:\t  10 kB\nThreads:\t1\n'
    self.assertEqual(
      process_memory.Parse(text),
      process_memory.Usage(current=10 * 1024, peak=12 * 1024),
    )
    self.assertIsNone(process_memory.Parse('Name:\tpython\nState:\tZ\n'))

  def testProcessThatHasEnded(self):
    process = subprocess.Popen([sys.executable, '-c', ''])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    # Ended, but still in the table of processes.
    with self.assertRaisesRegex(ProcessLookupError, f'{process.pid} has ended'):
      process_memory.Read(process.pid)
    process.wait()
    with self.assertRaisesRegex(ProcessLookupError, f'{process.pid} has ended'):
      process_memory.Read(process.pid)
    with self.assertRaisesRegex(ProcessLookupError, f'{process.pid} has ended'):
      process_memory.ResetPeak(process.pid)

  @parameterized.parameters(
    ('1.5G', 3 * 2**29),
    ('.5g', 2**29),
    ('800M', 800 * _MIB),
    ('2 GiB', 2**31),
    ('1TB', 2**40),
    ('1000000', 1_000_000),
    (' 64kb ', 64 * 1024),
  )
  def testParseSize(self, text, size):
    self.assertEqual(process_memory.ParseSize(text), size)

  @parameterized.parameters('', 'G', '1.5X', '-1G', '0', '0.0M', '1G5', 'two')
  def testNoSize(self, text):
    with self.assertRaisesRegex(ValueError, f"^'{text}' is not a size .*1.5G"):
      process_memory.ParseSize(text)

  def testFormatSize(self):
    self.assertEqual(process_memory.FormatSize(3 * 2**29), '1.50 GiB')
    self.assertEqual(process_memory.FormatSize(700 * _MIB), '700 MiB')


if __name__ == '__main__':
  absltest.main()
