"""Tests of preparation_options."""

import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import preparation_options


class PreparationOptionsTest(parameterized.TestCase):
  def _Options(self, **kwargs):
    output = os.path.join(self.create_tempdir().full_path, 'data')
    kwargs = {'source': 'django', 'output': output, **kwargs}
    return preparation_options.Options(**kwargs)

  def testDefaults(self):
    preparation_options.Check(self._Options())
    preparation_options.Check(
      self._Options(directions='xx-en', dev_share=0, test_share=0, jaccard=1)
    )

  @parameterized.parameters(
    ({'output': ''}, '--output is missing'),
    ({'output': '/proc'}, '--output=/proc is not empty'),
    ({'directions': 'en-x'}, "directions=en-x is .* did you mean 'en-xx'"),
    ({'vocab_size': 0}, '--vocab_size=0 must be 1 or more'),
    ({'min_pairs': 0}, '--min_pairs=0 must be 1 or more'),
    ({'temperature': 0.0}, '--temperature=0.0 must be above 0'),
    ({'jaccard': 0.0}, '--jaccard=0.0 must be above 0, and at most 1'),
    ({'jaccard': 1.5}, '--jaccard=1.5 must be above 0, and at most 1'),
    ({'dev_share': 1}, '--dev_share=1 must be from 0 to below 1'),
    ({'test_share': -0.1}, '--test_share=-0.1 must be from 0 to below 1'),
    ({'dev_share': 0.5, 'test_share': 0.5}, 'leave nothing for training'),
    ({'character_coverage': 0.5}, '--character_coverage=0.5 must be from 0.9'),
    ({'temperature': float('nan')}, '--temperature=nan must be'),
  )
  def testMistakes(self, kwargs, problem):
    with self.assertRaisesRegex(user_error.UserError, problem):
      preparation_options.Check(self._Options(**kwargs))


if __name__ == '__main__':
  absltest.main()
