"""Tests of image_source."""

from absl.testing import absltest

from tasks.image import image_source


class ImageSourceTest(absltest.TestCase):
  def testMustBeFilledIn(self):
    source = image_source.ImageSource.Params().Instantiate()
    with self.assertRaisesRegex(NotImplementedError, 'ImageSource.class_names'):
      _ = source.class_names
    with self.assertRaisesRegex(NotImplementedError, 'ImageSource.num_example'):
      _ = source.num_examples
    with self.assertRaisesRegex(NotImplementedError, 'ImageSource.Examples'):
      source.Examples(0, training=True, seed=1)

  def testParamsAreOnesOwn(self):
    params = image_source.ImageSource.Params().Set(data_dir='/a')
    source = params.Instantiate()
    params.data_dir = '/b'
    self.assertEqual(source.params.data_dir, '/a')


if __name__ == '__main__':
  absltest.main()
