"""Tests of tolerant_writing."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.jobs import tolerant_writing


class TolerantWritingTest(absltest.TestCase):
  def testToldOnceForEachKind(self):
    lines = []
    writing = tolerant_writing.TolerantWriting(lines.append)
    for what in ('a log', 'a log', 'summaries'):
      with writing(what):
        raise tf.errors.UnknownError(None, None, 'disk full')
    self.assertLen(lines, 2)
    self.assertStartsWith(lines[0], 'warning: cannot write a log: disk full;')
    with self.assertRaises(ValueError):
      with writing('a log'):
        raise ValueError('of the program')


if __name__ == '__main__':
  absltest.main()
