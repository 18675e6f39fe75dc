"""Tests for report."""

from __future__ import annotations

import json
import shlex

from absl.testing import absltest, parameterized

from tools.plan import candidates, evaluation, report, search


def _Planned(ranges, policies, memory, r=1, k=None, **kwargs):
  chunks = len(ranges) // (k or len(ranges))
  candidate = candidates.Candidate(
    r,
    k or len(ranges),
    4,
    2,
    'interleaved' if chunks > 1 else '1f1b',
    chunks,
    'auto',
  )
  return evaluation.Planned(
    candidate,
    tuple(ranges),
    tuple(policies),
    tuple(memory),
    **{
      'loop_seconds': 2.0,
      'all_reduce_seconds': 0.5,
      'update_seconds': 1.5,
      'bubble': 0.25,
      **kwargs,
    },
  )


_TWO = _Planned([(0, 2), (2, 5)], ['partition', 'none'], [2**30, 2**29])


class ReportTest(parameterized.TestCase):
  def testBest(self):
    lines = report.BestText([_TWO]).splitlines()
    self.assertLen(lines, 2)
    expected = '1 1 2 4 2 1f1b partition x1, none x1 1.00 GiB 4.00 2 25.0%'
    self.assertEqual(lines[1].split(), [*expected.split(), '0.500', '1.50'])

  def testDevices(self):
    text = report.DeviceText(_TWO, 'abcde')
    self.assertRegex(text, r'\n +0 +0 +2 +a +b +partition +1.00 GiB\n')
    self.assertRegex(text, r'\n +1 +1 +3 +c +e +none +512 MiB$')

  def testEqualNeighboursAreOneLine(self):
    planned = _Planned([(i, i + 1) for i in range(4)], ['none'] * 4, [9] * 4)
    lines = report.DeviceText(planned, 'abcd').splitlines()
    self.assertLen(lines, 2)
    self.assertRegex(lines[1], r'^ +0-3 +0-3 +1 +a +d +none +9 B$')

  def testRejections(self):
    rejected = evaluation.Rejected(_TWO.candidate, 3 * 2**30, 1)
    text = report.RejectionText(
      [search.Rejection(rejected, 7), search.Rejection(rejected, None)], 2**30
    )
    self.assertRegex(text, r'auto +3.00 GiB +1.00 GiB +K=7\n')
    self.assertEndsWith(text, 'no K')

  @parameterized.parameters(
    (0.01234, '0.0123'), (1.0, '1.00'), (123.4, '123'), (1234.5, '1,234')
  )
  def testSeconds(self, value, text):
    self.assertEqual(report.Seconds(value), text)

  def testJson(self):
    rejected = evaluation.Rejected(_TWO.candidate, 3 * 2**30, 1)
    outcome = search.Outcome(
      (_TWO,), (search.Rejection(rejected, 7),), 10, 5, 1
    )
    plain = json.loads(json.dumps(report.ToJson(outcome, 'train', model='m')))
    self.assertEqual(plain['best'][0]['seconds'], 4.0)
    self.assertEqual(plain['best'][0]['ranges'], [[0, 2], [2, 5]])
    self.assertEqual(plain['rejections'][0]['smallest_fitting'], 7)
    self.assertEqual((plain['model'], plain['command']), ('m', 'train'))


class CommandTest(absltest.TestCase):
  def _Flags(self, *args, **kwargs):
    words = shlex.split(report.Command(*args, **kwargs))
    self.assertEqual(words[:4], ['tools/bazelw', 'run', '//:trainer', '--'])
    return dict(word.split('=', 1) for word in words[4:])

  def testPolicyForEachPartition(self):
    flags = self._Flags(_TWO, 'a.B', local_workers=False)
    self.assertEqual(
      flags,
      {
        '--model': 'a.B',
        '--logdir': '/tmp/planned',
        '--worker_split_size': '2',
        '--num_micro_batches': '4',
        '--model_params_override': 'net.schedule=1f1b;net.splits=[2,3];'
        'net.rematerialize=partition+none',
      },
    )

  def testReplicasChunksWorkersAndOtherFlags(self):
    planned = _Planned(
      [(i, i + 1) for i in range(4)], ['cell'] * 4, [1, 1], r=3, k=2
    )
    flags = self._Flags(
      planned,
      'a.B',
      local_workers=True,
      overrides='input.batch_size=9',
      other_flags=['--import=mine'],
    )
    self.assertEqual(flags['--worker_replicas'], '3')
    self.assertEqual(flags['--local_workers'], '6')
    self.assertEqual(flags['--import'], 'mine')
    self.assertEqual(
      flags['--model_params_override'],
      'input.batch_size=9;net.schedule=interleaved;net.num_chunks=2;'
      'net.splits=[1,1,1,1];net.rematerialize=cell',
    )


if __name__ == '__main__':
  absltest.main()
