"""Tests of output."""

import json
import os

from absl import flags
from absl.testing import absltest, flagsaver

from tools.benchmarks import report
from tools.benchmarks.paper import output

FLAGS = flags.FLAGS


def _Draw(sections):
  figure = output.Figure(2.0, 1.0)
  figure.subplots().plot([row['x'] for row in sections[0].rows])
  return figure


class WriteTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._section = output.Section(
      'a', 'Some numbers.', [report.Column('x', 'number')], [{'x': 1}, {'x': 2}]
    )

  def testText(self):
    self.assertEqual(self._section.ToText(), 'Some numbers.\n\nnumber\n1\n2\n')

  def testFiles(self):
    folder = os.path.join(self.create_tempdir().full_path, 'made', 'here')
    with flagsaver.flagsaver(output_dir=folder):
      output.Write('table', [self._section], _Draw, setting=3)
    with open(os.path.join(folder, 'table.json')) as f:
      written = json.load(f)
    self.assertEqual(written['setting'], 3)
    self.assertEqual(
      written['rows'], [{'section': 'a', 'x': 1}, {'section': 'a', 'x': 2}]
    )
    with open(os.path.join(folder, 'table.png'), 'rb') as f:
      self.assertEqual(f.read(4), b'\x89PNG')

  def testNoFilesUnlessAskedFor(self):
    def _Fail(sections):
      del sections
      self.fail('nothing is to be drawn')

    output.Write('table', [self._section], _Fail)


if __name__ == '__main__':
  absltest.main()
