"""Tests of the picture of differences."""

from __future__ import annotations

import os

import numpy as np
from absl.testing import absltest
from matplotlib import colors, image

from tasks.mt import scores
from tools.mt import score_picture, score_report

_AMOUNTS = ('high', 'medium', 'low')


def _Direction(i, difference, kind='en_xx', sentences=60, count=6):
  return score_report.Direction(
    group=f'{kind}{i}',
    kind=kind,
    language=f'l{i}',
    training_pairs=100 - i,
    amount=_AMOUNTS[3 * i // count],
    sentences=sentences,
    score=scores.Score(30 + difference, 20, sentences),
    baselines={
      'memory': score_report.Compared(
        scores.Score(30, 20, sentences), difference
      )
    },
  )


def _Draw(directions):
  return score_picture.Draw(directions, 'memory', min_sentences=50)


class ScorePictureTest(absltest.TestCase):
  def testMarks(self):
    differences = [5, -3, 2, 4, -1, 8]
    directions = [
      _Direction(i, x, sentences=60 if i else 10)
      for i, x in enumerate(differences)
    ]
    figure = _Draw(directions[::-1])
    (axes,) = figure.axes
    self.assertEqual(
      [x.get_text() for x in axes.get_xticklabels()],
      [f'l{i}' for i in range(6)],
    )
    (marks,) = [x for x in axes.collections if len(x.get_offsets()) == 6]
    np.testing.assert_allclose(
      marks.get_offsets(), list(enumerate(differences))
    )
    faces = [colors.to_hex(x) for x in marks.get_facecolors()]
    edges = [colors.to_hex(x) for x in marks.get_edgecolors()]
    self.assertEqual(faces[0], '#ffffff')
    self.assertEqual(faces[1:], edges[1:])
    better, worse = edges[0], edges[1]
    self.assertNotEqual(better, worse)
    self.assertEqual(edges, [better if x > 0 else worse for x in differences])
    self.assertEqual(
      [x.get_text() for x in axes.texts],
      [
        'high, 99 to 100 pairs\nmean +1.0',
        'medium, 97 to 98 pairs\nmean +3.0',
        'low, 95 to 96 pairs\nmean +3.5',
      ],
    )

  def testPanels(self):
    figure = _Draw(
      [_Direction(0, 5), _Direction(1, 4), _Direction(0, 3, 'xx_en')]
    )
    self.assertEqual(
      [x.get_title(loc='left') for x in figure.axes],
      [
        'Translations from English: chrF compared with memory',
        'Translations into English: chrF compared with memory',
      ],
    )

  def testTextsAreWithinTheFigureAndApart(self):
    figure = _Draw(
      [
        _Direction(i, i % 9 - 3, kind, count=94)
        for i in range(94)
        for kind in ('en_xx', 'xx_en')
      ]
    )
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    width, height = figure.get_size_inches() * score_picture.DPI
    texts = []
    for axes in figure.axes:
      texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label]
      texts += axes.get_xticklabels()
      texts += [x for x in axes.findobj() if x is axes._left_title]
    boxes = [x.get_window_extent(renderer) for x in texts]
    self.assertLen(boxes, 2 * (3 + 2 + 94 + 1))
    for i, box in enumerate(boxes):
      self.assertGreaterEqual(min(box.x0, box.y0), 0)
      self.assertLessEqual(box.x1, width)
      self.assertLessEqual(box.y1, height)
      for other in boxes[:i]:
        self.assertFalse(box.overlaps(other))

  def testFile(self):
    path = os.path.join(self.create_tempdir().full_path, 'x.png')
    score_picture.WritePng([_Direction(0, 5)], 'memory', path, min_sentences=50)
    self.assertEqual(image.imread(path).ndim, 3)

  def testWithoutTheBaseline(self):
    with self.assertRaisesRegex(ValueError, "no direction .* 'bilingual'"):
      score_picture.Draw([_Direction(0, 5)], 'bilingual', min_sentences=5)


if __name__ == '__main__':
  absltest.main()
