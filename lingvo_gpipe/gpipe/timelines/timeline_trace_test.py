"""Tests of timeline_trace: the rules of the format, on real traces."""

from __future__ import annotations

import collections
import json

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.timelines import simulated_times, timeline_trace
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib

_K, _M = 4, 6


def _Trace(schedule='1f1b', num_devices=_K, **kwargs):
  timeline = timeline_lib.FromTimes(
    simulated_times.Uniform(
      schedule, _K, _M, num_devices, jitter=0.2, epoch=1.75e9, **kwargs
    ),
    devices=simulated_times.Workers(_K, num_devices),
    schedule=schedule,
    policies='partition',
    model='a.Model',
  )
  # As a viewer gets it.
  return timeline, json.loads(json.dumps(timeline_trace.ToTrace(timeline)))


def _OfPhase(trace, phase):
  return [e for e in trace['traceEvents'] if e['ph'] == phase]


@parameterized.named_parameters(
  ('1F1B', {}),
  ('GPipe', {'schedule': 'gpipe', 'transfer': 0.1}),
  ('Interleaved', {'schedule': 'interleaved', 'num_devices': 2}),
  ('OneDevice', {'schedule': 'interleaved', 'num_devices': 1}),
)
class TraceTest(parameterized.TestCase):
  def testFields(self, kwargs):
    _, trace = _Trace(**kwargs)
    common = {'name': str, 'ph': str, 'pid': int}
    timed = {**common, 'cat': str, 'ts': int, 'tid': int}
    needed = {
      'M': {**common, 'args': dict},
      'X': {**timed, 'dur': int, 'args': dict},
      's': {**timed, 'id': int},
      'f': {**timed, 'id': int, 'bp': str},
    }
    for event in trace['traceEvents']:
      self.assertIn(event['ph'], needed)
      for field, kind in needed[event['ph']].items():
        self.assertIsInstance(event[field], kind, event)
      self.assertGreaterEqual(event.get('ts', 0), 0)
      self.assertGreater(event.get('dur', 1), 0)

  def testEachProcessAndThreadHasANumberAndAName(self, kwargs):
    timeline, trace = _Trace(**kwargs)
    names = collections.defaultdict(dict)
    for event in _OfPhase(trace, 'M'):
      if event['name'].endswith('_name'):
        place = event['pid'], event.get('tid')
        self.assertNotIn(event['name'], names[place])
        names[place][event['name']] = event['args']['name']
    places = {(e['pid'], e['tid']) for e in _OfPhase(trace, 'X')}
    self.assertLen(places, _K)
    for pid, tid in places:
      self.assertIn('thread_name', names[pid, tid])
      self.assertIn('process_name', names[pid, None])
    processes = {pid for pid, _ in places}
    threads = {tid for _, tid in places}
    self.assertLen(processes, timeline.num_devices)
    self.assertLen(threads, _K)
    # A process has a main thread with its own number.
    self.assertEmpty(processes & threads)
    self.assertNotIn(0, processes | threads)

  def testPassesOfAThreadDoNotOverlap(self, kwargs):
    timeline, trace = _Trace(**kwargs)
    by_thread = collections.defaultdict(list)
    for event in _OfPhase(trace, 'X'):
      by_thread[event['tid']].append((event['ts'], event['ts'] + event['dur']))
    for spans in by_thread.values():
      spans.sort()
      for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
        self.assertGreaterEqual(start, end)
    end = max(span[1] for spans in by_thread.values() for span in spans)
    self.assertAlmostEqual(end, timeline.step_seconds * 1e6, delta=1)

  def testArrowsJoinPasses(self, kwargs):
    """From forward to forward of the next partition, and back."""
    _, trace = _Trace(**kwargs)

    def _Enclosing(arrow):
      (found,) = [
        e
        for e in _OfPhase(trace, 'X')
        if (e['pid'], e['tid']) == (arrow['pid'], arrow['tid'])
        and e['ts'] <= arrow['ts'] < e['ts'] + e['dur']
      ]
      return found

    starts = {e['id']: e for e in _OfPhase(trace, 's')}
    ends = {e['id']: e for e in _OfPhase(trace, 'f')}
    self.assertEqual(starts.keys(), ends.keys())
    self.assertLen(starts, len(_OfPhase(trace, 's')))
    self.assertLen(starts, 2 * (_K - 1) * _M)
    joined = set()
    for number, start in starts.items():
      end = ends[number]
      self.assertEqual(end['bp'], 'e')
      self.assertEqual((start['name'], start['cat']), (end['name'], end['cat']))
      self.assertLessEqual(start['ts'], end['ts'])
      source, target = _Enclosing(start)['args'], _Enclosing(end)['args']
      self.assertEqual(source['kind'], target['kind'])
      self.assertEqual(source['micro_batch'], target['micro_batch'])
      joined.add(
        (
          source['kind'],
          source['micro_batch'],
          target['partition'] - source['partition'],
          source['partition'],
        )
      )
    expected = {('forward', i, 1, k) for i in range(_M) for k in range(_K - 1)}
    expected |= {
      ('backward', i, -1, k + 1) for i in range(_M) for k in range(_K - 1)
    }
    self.assertEqual(joined, expected)

  def testPassesComeBeforeArrows(self, kwargs):
    _, trace = _Trace(**kwargs)
    phases = [e['ph'] for e in trace['traceEvents']]
    self.assertLess(
      max(i for i, p in enumerate(phases) if p == 'X'),
      min(i for i, p in enumerate(phases) if p in 'sf'),
    )


class ContradictionTest(absltest.TestCase):
  def testNoArrowsIntoThePast(self):
    times = simulated_times.Uniform('1f1b', 2, 2)
    times[1] += 100
    timeline = timeline_lib.FromTimes(
      times, devices=['a', 'b'], schedule='1f1b', policies='none'
    )
    trace = timeline_trace.ToTrace(timeline)
    names = [e['name'] for e in _OfPhase(trace, 's')]
    self.assertEqual(names, ['activations'] * 2)


if __name__ == '__main__':
  absltest.main()
