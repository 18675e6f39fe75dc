"""Tests of choices."""

from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import user_error
from tools.benchmarks.paper import choices


def _Flag(*value):
  flag = mock.Mock(value=list(value))
  flag.name = 'colours'
  return flag


class ChoicesTest(absltest.TestCase):
  def testCheck(self):
    choices.Check(_Flag('red', 'blue'), ('red', 'green', 'blue'))
    choices.Check(_Flag(), ('red',), may_be_empty=True)
    for value in (('red', 'grey'), ()):
      with self.assertRaisesRegex(
        user_error.UserError,
        f'^--colours={",".join(value)}: choose from red, green$',
      ):
        choices.Check(_Flag(*value), ('red', 'green'))


if __name__ == '__main__':
  absltest.main()
