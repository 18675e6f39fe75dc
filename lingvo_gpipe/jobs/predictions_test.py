"""Tests of predictions."""

import json
import os

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe.jobs import predictions


class PredictionsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._path = os.path.join(self._folder, 'p.jsonl')

  def _Lines(self):
    with open(self._path) as f:
      return [json.loads(line) for line in f]

  def _Write(self, logits, labels, is_example=None):
    logits = tf.constant(logits, tf.float32)
    rows = len(labels)
    with predictions.Open(self._path) as writer:
      writer.Add(
        'test',
        {'labels': tf.constant(labels, tf.int32)},
        {'logits': logits},
        np.ones(rows, bool) if is_example is None else np.array(is_example),
      )
      writer.Publish()
    return self._Lines()

  def testALineForEachExample(self):
    odds = np.array([[1.0, 2, 3, 4, 5, 6], [6, 1, 1, 1, 1, 2]])
    lines = self._Write(np.log(odds) + 100.0, [0, 0])
    self.assertLen(lines, 2)
    for k, (line, row) in enumerate(zip(lines, odds, strict=True)):
      self.assertEqual((line['dataset'], line['index']), ('test', k))
      self.assertEqual(line['label'], 0)
      top = line['top5']
      # Of equal ones the lower class comes first.
      expected = [5, 4, 3, 2, 1] if k == 0 else [0, 5, 1, 2, 3]
      self.assertEqual([c for c, unused in top], expected)
      np.testing.assert_allclose(
        [p for unused, p in top], row[expected] / row.sum(), rtol=1e-5
      )
      self.assertEqual([line['predicted'], line['probability']], top[0])

  def testPaddingIsLeftOutAndDatasetsAreCountedApart(self):
    batch = {'labels': np.array([1, 0, 1])}
    outputs = {'logits': np.eye(3)[:, :2]}
    with predictions.Open(self._path) as writer:
      writer.Add('dev', batch, outputs, np.array([True, True, False]))
      writer.Add('test', batch, outputs, np.array([True, False, True]))
      writer.Add('test', batch, outputs, np.array([False, True, False]))
      writer.Publish()
    self.assertEqual(
      [(x['dataset'], x['index'], x['predicted']) for x in self._Lines()],
      [
        ('dev', 0, 0),
        ('dev', 1, 1),
        ('test', 0, 0),
        ('test', 1, 0),
        ('test', 2, 1),
      ],
    )
    self.assertLen(self._Lines()[0]['top5'], 2)

  def testNotFinite(self):
    nan, inf = float('nan'), float('inf')
    lines = self._Write([[0.0, nan], [inf, 0.0], [0.0, 1.0]], [1, 1, 1])
    self.assertEqual([x['predicted'] for x in lines], [None, None, 1])
    self.assertEqual(
      lines[0],
      {
        'dataset': 'test',
        'index': 0,
        'label': 1,
        'predicted': None,
        'probability': None,
        'top5': [],
      },
    )

  def testAllOrNothing(self):
    self._Write([[0.0, 1.0]], [1])
    with self.assertRaises(KeyboardInterrupt):
      with predictions.Open(self._path) as writer:
        arguments = ({'labels': np.zeros(2)}, {'logits': np.zeros([2, 2])})
        writer.Add('test', *arguments, np.ones(2, bool))
        raise KeyboardInterrupt
    with predictions.Open(self._path):
      pass  # An evaluation that was interrupted publishes nothing.
    self.assertLen(self._Lines(), 1)
    self.assertEqual(os.listdir(self._folder), ['p.jsonl'])

  def testNoPath(self):
    with predictions.Open('') as writer:
      self.assertIsNone(writer)

  @parameterized.parameters(
    ({}, {'labels': [8]}, 'returns nothing else than metrics'),
    ({'logits': [8, 9, 3]}, {'labels': [8]}, r'returns logits \[8, 9, 3\]'),
    ({'logits': [8, 3]}, {'x': [8]}, r'its batch has x \[8\]'),
    ({'logits': [8, 3]}, {'labels': [8, 9]}, r'has labels \[8, 9\]'),
  )
  def testNothingToPredict(self, outputs, batch, message):
    def _Specs(shapes):
      return {k: tf.TensorSpec(v, tf.float32) for k, v in shapes.items()}

    with self.assertRaisesRegex(ValueError, message):
      predictions.Check(_Specs(outputs), _Specs(batch))


if __name__ == '__main__':
  absltest.main()
