"""Tests of peer_process, with small programs."""

import sys

from absl.testing import absltest

from tools.benchmarks import peer_process

_PROGRAM = """
import json, sys
setup = json.loads(sys.stdin.readline())
if 'fail' in setup:
  sys.exit('no such luck')
print(json.dumps({'ready': '1.2'}), flush=True)
for line in sys.stdin:
  if line.strip() == 'break':
    raise ValueError('broken')
  loss = setup['loss'] and setup['loss'] * int(line)
  print(json.dumps({'loss': loss}), flush=True)
"""


class PeerProcessTest(absltest.TestCase):
  def _Start(self, *setups):
    program = self.create_tempfile('program.py', _PROGRAM).full_path
    return peer_process.PeerProcesses(sys.executable, program, setups)

  def testSteps(self):
    with self._Start({'loss': None}, {'loss': 1.5}) as processes:
      processes.WaitUntilReady()
      self.assertEqual(processes.version, '1.2')
      self.assertEqual(processes.Step('2'), 3.0)
      self.assertEqual(processes.Step('4'), 6.0)

  def testFailures(self):
    with self._Start({'loss': 1.0}, {'fail': True}) as processes:
      with self.assertRaisesRegex(
        peer_process.PeerError, 'process 1, ended with status 1: no such luck'
      ):
        processes.WaitUntilReady()
    with self._Start({'loss': 1.0}) as processes:
      processes.WaitUntilReady()
      with self.assertRaisesRegex(
        peer_process.PeerError, 'program.py, process 0, .* ValueError: broken'
      ):
        processes.Step('break')

  def testCanImport(self):
    self.assertTrue(peer_process.CanImport(sys.executable, 'json.decoder'))
    self.assertFalse(peer_process.CanImport(sys.executable, 'json.missing'))
    self.assertFalse(peer_process.CanImport('/no/such/python', 'json'))


if __name__ == '__main__':
  absltest.main()
