"""Tests of classifiers."""

from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from tools.baselines import classifiers, examples


def _Draw(n, seed, num_classes=3, dim=4, noise=0.3):
  """Clouds of points, one a class; class 1 twice as frequent."""
  generator = np.random.default_rng(seed)
  centres = np.random.default_rng(7).normal(size=[num_classes, dim])
  labels = generator.choice([1, *range(num_classes)], n)
  pixels = centres[labels] + noise * generator.normal(size=[n, dim])
  return examples.Examples(pixels.astype(np.float32), labels)


class ClassifiersTest(parameterized.TestCase):
  def testMajorityClass(self):
    train = examples.Examples(np.zeros([5, 2]), np.array([4, 2, 2, 4, 0]))
    predict = classifiers.MajorityClass(train)
    np.testing.assert_array_equal(predict(np.zeros([3, 2])), [2, 2, 2])

  @parameterized.parameters(10_000_000, 100, 1)
  def testNearestNeighbour(self, max_distances):
    train, test = _Draw(50, 1), _Draw(20, 2)
    distances = np.linalg.norm(
      test.pixels[:, np.newaxis] - train.pixels, axis=-1
    )
    with mock.patch.object(classifiers, '_MAX_DISTANCES', max_distances):
      found = classifiers.NearestNeighbour(train)(test.pixels)
    np.testing.assert_array_equal(found, train.labels[distances.argmin(1)])

  def testNearestNeighbourKnowsWhatItHasSeen(self):
    train = _Draw(50, 1)
    predict = classifiers.NearestNeighbour(train)
    self.assertEqual(classifiers.Accuracy(predict, train), 1.0)

  def testLogisticRegression(self):
    train, dev, test = _Draw(300, 1), _Draw(100, 2), _Draw(200, 3)
    majority = classifiers.Accuracy(classifiers.MajorityClass(train), test)
    self.assertBetween(majority, 0.4, 0.6)
    for some in (dev, None):
      predict = classifiers.LogisticRegression(train, some)
      self.assertGreater(classifiers.Accuracy(predict, test), 0.95)

  def testLogisticRegressionGoesByTheDevData(self):
    # Few noisy examples of many dimensions: a strong penalty is best. Where dev
    # data are the training data, none is.
    settings = {'dim': 30, 'noise': 3.0}
    train, dev = _Draw(60, 1, **settings), _Draw(500, 2, **settings)
    strong = classifiers.LogisticRegression(train, dev)
    weak = classifiers.LogisticRegression(train, train)
    self.assertEqual(classifiers.Accuracy(weak, train), 1.0)
    self.assertLess(classifiers.Accuracy(strong, train), 1.0)
    self.assertGreater(
      classifiers.Accuracy(strong, dev), classifiers.Accuracy(weak, dev)
    )

  def testAccuracy(self):
    data = examples.Examples(np.zeros([4, 1]), np.array([1, 2, 1, 3]))
    accuracy = classifiers.Accuracy(lambda pixels: np.ones(len(pixels)), data)
    self.assertEqual(accuracy, 0.5)


if __name__ == '__main__':
  absltest.main()
