"""Tests of what is wrong with a TranslationInput."""

from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import test_translation_data, translation_input


class TranslationInputErrorsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    test_translation_data.Write(self.folder)

  def _Input(self, **kwargs):
    params = translation_input.TranslationInput.Params().Set(
      data_dir=self.folder, bucket_lengths=[8, 16, 64]
    )
    return params.Set(**kwargs).Instantiate()

  @parameterized.parameters(
    ({'split': 'valid'}, "split='valid' is none of train, dev, test"),
    ({'directions': 'de-en'}, 'directions.*is none of en-xx, xx-en, both'),
    ({'temperature': 0.0}, r'temperature=0\.0 must be above 0'),
    ({'max_length': -1}, 'max_length=-1 is below 0'),
    ({'max_length': 65}, 'max_length=65 is more than the last'),
    ({'bucket_lengths': []}, 'bucket_lengths'),
    ({'batch_tokens': 100, 'batch_multiple': 4}, 'too few.*take 256'),
    ({'batch_size': 0}, 'batch_size=0'),
  )
  def testParams(self, params, message):
    with self.assertRaisesRegex(ValueError, message):
      self._Input(**params)

  def testMakingOneReadsNothing(self):
    generator = self._Input(data_dir='', training=True)
    self.assertEqual(generator.BatchSpec().inputs.shape, [64, 64])
    with self.assertRaisesRegex(
      user_error.UserError, r'tools\.mt\.prepare.*set --data_dir=DIR'
    ):
      _ = generator.num_examples

  @parameterized.parameters(
    ({'vocab_size': 8000}, 'vocabulary of 312 ids.*vocab_size=8000; prepare'),
    ({'languages': ['dee']}, "no language 'dee'.*did you mean 'de'"),
    ({'split': 'dev', 'languages': ['pt_BR']}, 'no dev examples of pt_BR'),
    (
      {'bucket_lengths': [2], 'training': True},
      'all 188 examples.*longer than 2 ids; raise bucket_lengths',
    ),
  )
  def testData(self, params, message):
    with self.assertRaisesRegex(user_error.UserError, message):
      self._Input(**params).Dataset()


if __name__ == '__main__':
  absltest.main()
