"""Tests of report."""

import json
import os
from unittest import mock

from absl.testing import absltest

from tools.benchmarks import report

Column = report.Column


class ReportTest(absltest.TestCase):
  def testTable(self):
    columns = [
      Column('name', 'name'),
      Column('seconds', 's/step', report.Seconds),
      Column('nothing', 'never shown'),
      Column('share', 'bubble', report.Percent),
    ]
    rows = [
      {'name': 'one', 'seconds': 1.23456, 'share': 0.125},
      {'name': 'second', 'seconds': 123.4, 'share': None},
    ]
    self.assertEqual(
      report.Table(columns, rows),
      'name    s/step  bubble\none      1.235   12.5%\nsecond     123       -',
    )

  def testShow(self):
    self.assertEqual(report.Count(1234567.8), '1,234,568')
    self.assertEqual(report.Ratio(1.005), '1.00')
    self.assertEqual(report.Mebibytes(3 * 2**19), '1.5')

  def testJson(self):
    path = os.path.join(self.create_tempdir().full_path, 'new', 'a.json')
    report.WriteJson(path, [{'k': 1}], sizes={'layers': 8})
    with open(path) as f:
      written = json.load(f)
    self.assertEqual(written['rows'], [{'k': 1}])
    self.assertEqual(written['sizes'], {'layers': 8})
    self.assertEqual(written['machine']['cores'], len(os.sched_getaffinity(0)))
    self.assertNotEmpty(written['machine']['processor'])

  def testARelativePathIsRelativeToTheUsersFolder(self):
    folder = self.create_tempdir().full_path
    with mock.patch.dict(os.environ, BUILD_WORKING_DIRECTORY=folder):
      report.WriteJson('a.json', [])
    self.assertEqual(os.listdir(folder), ['a.json'])


if __name__ == '__main__':
  absltest.main()
