"""Tests of saved_classifier."""

import os

import numpy as np
import tensorflow as tf

from lingvo_gpipe import user_error
from tools.classify import saved_classifier, test_model


class SavedClassifierTest(tf.test.TestCase):
  def testProbabilities(self):
    path = test_model.Write(self.create_tempdir().full_path, ['dark', 'light'])
    classifier = saved_classifier.SavedClassifier(path)
    self.assertEqual(classifier.class_names, ['dark', 'light'])
    found = classifier.Probabilities(
      [test_model.Picture(51), test_model.Picture(204), test_model.Picture(0)]
    )
    self.assertAllClose(found, [[0.8, 0.2], [0.2, 0.8], [1.0, 0.0]])
    self.assertEqual(found.dtype, np.float32)

  def testNoNames(self):
    path = test_model.Write(self.create_tempdir().full_path)
    classifier = saved_classifier.SavedClassifier(path)
    self.assertEqual(classifier.class_names, ['0', '1'])

  def testBadPicture(self):
    path = test_model.Write(self.create_tempdir().full_path)
    classifier = saved_classifier.SavedClassifier(path)
    for contents, problem in (
      (b'', 'Input is empty.'),
      (b'no picture', 'Unknown image file format. One of JPEG'),
      (test_model.Picture(51)[:-20], 'Invalid PNG data'),
    ):
      with self.assertRaises(saved_classifier.BadPictureError) as e:
        classifier.Probabilities([test_model.Picture(51), contents])
      self.assertStartsWith(str(e.exception), problem)
      self.assertNotIn('\n', str(e.exception))

  def testOtherModels(self):
    folder = self.create_tempdir().full_path
    other = os.path.join(folder, 'other')
    module = tf.Module()
    module.value = tf.Variable(1.0)
    function = tf.function(lambda: {'x': module.value}, input_signature=[])
    tf.saved_model.save(
      module, other, signatures={'get': function.get_concrete_function()}
    )
    names = test_model.Write(os.path.join(folder, 'names'), ['just one'])
    for path, problem in (
      (os.path.join(folder, 'none'), 'does not exist'),
      (folder, 'does not exist'),
      (other, "no signature 'image_bytes'.*its signatures are get"),
      (names, '1 lines, but the model 2 classes'),
    ):
      with self.assertRaisesRegex(user_error.UserError, f'{path}.*{problem}'):
        saved_classifier.SavedClassifier(path)


if __name__ == '__main__':
  tf.test.main()
