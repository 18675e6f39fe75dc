"""Tests of job_names."""

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import job_names


class JobNamesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('trainer', ('trainer',)),
    ('worker', ('worker',)),
    ('decoder,evaler', ('decoder', 'evaler')),
    ('trainer,evaler,decoder', ('trainer', 'evaler', 'decoder')),
  )
  def testParse(self, text, names):
    self.assertEqual(job_names.Parse(text), names)

  @parameterized.parameters(
    ('evalor', "--job=evalor: there is no job 'evalor'; give one of trainer, "),
    ('trainer,', "--job=trainer,: there is no job ''; "),
    ('evaler,evaler', '--job=evaler,evaler names evaler twice'),
    ('evaler,worker', '--job=evaler,worker: a worker computes for other jobs'),
  )
  def testWrong(self, text, message):
    with self.assertRaisesRegex(user_error.UserError, f'^{message}'):
      job_names.Parse(text)


if __name__ == '__main__':
  absltest.main()
