"""Tests of the tool as a user starts it."""

from __future__ import annotations

import functools
import json
import os

from absl.testing import absltest, parameterized

from tools.benchmarks import tool_process

_DEVICE = ('--num_devices=4', '--device_flops=1T', '--link_speed=10G')


_Run = functools.partial(tool_process.RunModule, 'tools.plan')


class PlanTest(parameterized.TestCase):
  def testPlanOfARegisteredModel(self):
    path = os.path.join(self.create_tempdir().full_path, 'plan.json')
    done = _Run(
      '--model=lm.small.TransformerSmall',
      *_DEVICE,
      '--device_memory=1G',
      '--batch_size=16',
      '--replicas=1,2',
      '--schedules=1f1b,gpipe',
      '--top=2',
      f'--json={path}',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('The fastest that fit:', done.stdout)
    with open(path) as f:
      written = json.load(f)
    self.assertEqual(written['batch_size'], 16)
    self.assertLen(written['best'], 2)
    first, second = written['best']
    self.assertLessEqual(first['seconds'], second['seconds'])
    self.assertLess(max(first['memory']), 2**30)
    self.assertIn(written['command'], done.stdout)
    self.assertIn('input.batch_size=16', written['command'])

  def testNothingFits(self):
    done = _Run(
      '--model=lm.small.TransformerSmall', *_DEVICE, '--device_memory=515M'
    )
    self.assertEqual(done.returncode, 1, done.stderr)
    self.assertIn('Nothing fits; nearest:', done.stdout)
    self.assertNotIn('To train', done.stdout)

  @parameterized.parameters(
    (('--model=x', '--device_flops=1T', '--link_speed=1G'), '--num_devices=0'),
    (_DEVICE, '--model is missing'),
    (
      ('--model=x', '--num_devices=2', '--link_speed=1G'),
      '--device_flops is m',
    ),
    (
      ('--model=x', *_DEVICE, '--device_memory=much'),
      "--device_memory: 'much'",
    ),
    (('--model=x', *_DEVICE, '--device_memory=1M'), 'has no room for a model'),
    (('--model=x', *_DEVICE, '--policies=some'), "--policies: 'some' is not"),
    (('--model=x', *_DEVICE, '--replicas=a'), "--replicas=a: 'a' must be"),
    (('--model=lm.nothing.X', *_DEVICE), 'lm.nothing'),
    (
      ('--model=lm.small.TransformerSmall', *_DEVICE, '--micro_batches=7'),
      'no M of --micro_batches=7 divides',
    ),
  )
  def testErrorsAreOneLine(self, args, message):
    done = _Run(*args)
    self.assertEqual(done.returncode, 2, done.stderr)
    self.assertLen(done.stderr.splitlines(), 1)
    self.assertStartsWith(done.stderr, 'error: ')
    self.assertIn(message, done.stderr)
    self.assertEqual(done.stdout, '')


if __name__ == '__main__':
  absltest.main()
