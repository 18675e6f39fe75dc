"""Tests of eval_flags; flags_test has the flags themselves."""

import os
from unittest import mock

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import eval_flags

_Options = eval_flags.EvalOptions


class EvalFlagsTest(parameterized.TestCase):
  @parameterized.parameters(
    ('trainer', {}),
    ('evaler', {}),
    ('evaler', {'timeout': 9.0}),
    ('evaler', {'once': True}),
    ('evaler', {'all': True}),
    ('evaler', {'checkpoint': 'c'}),
    ('evaler', {'predictions': 'no_directory_needed'}),
    ('decoder', {'predictions': 'no_directory_needed'}),
    ('trainer', {'predictions': 'no_directory_needed'}),
    ('trainer,evaler', {'predictions': 'no_directory_needed'}),
    ('evaler,decoder', {'all': True}),
  )
  def testFine(self, jobs, options):
    _Options(**options).Check(jobs.split(','), eval_at_end=True)

  @parameterized.parameters(
    (
      'trainer',
      {'once': True},
      '--eval_once is for --job=evaler or decoder, not trainer',
    ),
    ('trainer', {'checkpoint': 'c'}, '--checkpoint=c is for --job=evaler'),
    ('trainer', {'timeout': 9.0}, '--eval_timeout=9 is for --job=evaler'),
    (
      'trainer,evaler',
      {'all': True},
      '--eval_all is for --job=evaler or decoder, not trainer,evaler',
    ),
    (
      'evaler,decoder',
      {'predictions': 'p'},
      '--predictions=p is one file, but each of --job=evaler,decoder would',
    ),
    (
      'evaler',
      {'once': True, 'all': True},
      '--eval_once and --eval_all differ .* give one of them',
    ),
    (
      'evaler',
      {'all': True, 'timeout': 0.5},
      '--eval_timeout=0.5 is for a job that waits.*--eval_all',
    ),
  )
  def testDoNotGoTogether(self, jobs, options, message):
    with self.assertRaisesRegex(user_error.UserError, f'^{message}'):
      _Options(**options).Check(jobs.split(','), eval_at_end=True)

  def testPredictionsOfNoEvaluation(self):
    with self.assertRaisesRegex(user_error.UserError, '--noeval_at_end'):
      _Options(predictions='p').Check(['trainer'], eval_at_end=False)
    _Options(predictions='p').Check(['evaler'], eval_at_end=False)
    _Options(predictions='p').Check(['trainer', 'evaler'], eval_at_end=False)

  def testPredictionsThatCannotBeWritten(self):
    folder = self.create_tempdir().full_path
    _Options(predictions=f'{folder}/p').Check(['evaler'], eval_at_end=True)
    for path, message in (
      (folder, 'is a directory; name a file'),
      (f'{folder}/no/p', f'there is no directory {folder}/no$'),
    ):
      with self.assertRaisesRegex(user_error.UserError, message):
        _Options(predictions=path).Check(['evaler'], eval_at_end=True)
    with mock.patch.object(os, 'access', return_value=False):
      with self.assertRaisesRegex(user_error.UserError, 'is read-only'):
        _Options(predictions=f'{folder}/p').Check(['evaler'], eval_at_end=True)


if __name__ == '__main__':
  absltest.main()
