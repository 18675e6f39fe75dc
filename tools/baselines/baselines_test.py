"""Tests of the tool, `python -m tools.baselines`."""

import json
import os
import subprocess
import sys

from absl.testing import absltest

from lingvo_gpipe import child_process

_DIGITS = '--model=image.digits.AmoebaNetDigits'


def _Run(*args):
  return subprocess.run(
    [sys.executable, '-m', 'tools.baselines', *args],
    capture_output=True,
    text=True,
    check=False,
    # PYTHONSAFEPATH, which tests are started with, takes the root away.
    env=child_process.Environment(),
  )


class BaselinesTest(absltest.TestCase):
  def testDigits(self):
    path = os.path.join(self.create_tempdir().full_path, 'digits.json')
    result = _Run(_DIGITS, f'--json={path}')
    self.assertEqual(result.returncode, 0, result.stderr)
    title, heading, *rows = result.stdout.splitlines()
    self.assertEqual(
      title,
      'image.digits.AmoebaNetDigits: 1254 train, 179 dev, 364 test examples',
    )
    self.assertEqual(heading.split(), ['accuracy', 'dev', 'test'])
    with open(path, encoding='utf-8') as f:
      report = json.load(f)
    self.assertEqual(
      report['num_examples'], {'train': 1254, 'dev': 179, 'test': 364}
    )
    accuracies = report['accuracies']
    self.assertLen(rows, 3)
    for row, (name, values) in zip(rows, accuracies.items(), strict=True):
      numbers = [f'{values[part]:.4f}' for part in ('dev', 'test')]
      self.assertEqual(row.split(), [*name.split(), *numbers])
    test = [values['test'] for values in accuracies.values()]
    self.assertAlmostEqual(test[0], 0.1, delta=0.02)
    self.assertAlmostEqual(test[1], _NEIGHBOUR, delta=0.003)
    self.assertAlmostEqual(test[2], _LOGISTIC, delta=0.006)

  def testErrors(self):
    for args, expected in (
      ([], 'error: --model is missing: name a registered image model'),
      (
        [_DIGITS, '--max_examples=100'],
        f'error: {_DIGITS} has 1254 training examples, more than '
        '--max_examples=100: raise it',
      ),
    ):
      result = _Run(*args)
      self.assertEqual(result.returncode, 2, result.stderr)
      self.assertStartsWith(result.stderr.splitlines()[-1], expected)
      self.assertEmpty(result.stdout)


# As docs/images_small.md says.
_NEIGHBOUR = 0.9890
_LOGISTIC = 0.9615


if __name__ == '__main__':
  absltest.main()
