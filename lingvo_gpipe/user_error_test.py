"""Tests of user_error."""

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error


class UserErrorTest(parameterized.TestCase):
  def testMessageIsOneLine(self):
    error = user_error.UserError('what,\n  why\tand what to do\n')
    self.assertEqual(str(error), 'what, why and what to do')

  def testExpectedTypesBecomeUserErrors(self):
    with self.assertRaisesRegex(
      user_error.UserError, '^--flag: 3 is odd$'
    ) as caught:
      with user_error.Expected(ValueError, OSError, prefix='--flag: '):
        raise ValueError('3 is odd')
    self.assertIsInstance(caught.exception.__cause__, ValueError)

  @parameterized.parameters(
    (TypeError('not listed'), True, ''),
    (ValueError('switched off'), False, ''),
    (ValueError("a cell's own"), True, 'in cell 3'),
  )
  def testOthersPass(self, error, when, note):
    if note:
      error.add_note(note)
    with self.assertRaises(type(error)) as caught:
      with user_error.Expected(ValueError, when=when):
        raise error
    self.assertIs(caught.exception, error)

  def testUserErrorIsNotWrappedAgain(self):
    with self.assertRaisesRegex(user_error.UserError, '^inner$'):
      with user_error.Expected(Exception, prefix='outer: '):
        raise user_error.UserError('inner')


if __name__ == '__main__':
  absltest.main()
