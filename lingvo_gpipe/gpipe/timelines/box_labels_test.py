"""Tests of box_labels."""

from __future__ import annotations

from absl.testing import absltest, parameterized

from lingvo_gpipe.gpipe.timelines import box_labels
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def _Events(kind, widths):
  return [
    timeline_lib.Event('/device:CPU:0', 3, i, kind, 0.0, float(width))
    for i, width in enumerate(widths)
  ]


def _Texts(events, points=1.0):
  return [text for _, text, _ in box_labels.Labels(events, points)]


class LabelsTest(parameterized.TestCase):
  @parameterized.parameters(
    (100, ['$F_{3{,}0}$', '$F_{3{,}1}$']),
    (14, ['F0', 'F1']),
    (8, ['0', '1']),
    (4, []),
  )
  def testFormDependsOnTheRoom(self, width, texts):
    self.assertEqual(_Texts(_Events('forward', [width] * 2)), texts)
    self.assertEqual(_Texts(_Events('forward', [1] * 2), float(width)), texts)

  def testKindsAgree(self):
    """What the narrower ones have room for."""
    events = _Events('forward', [14] * 2) + _Events('backward', [100] * 2)
    self.assertEqual(_Texts(events), ['F0', 'F1', 'B0', 'B1'])

  def testTooNarrowKindsDoNotCount(self):
    events = _Events('recompute', [3] * 2) + _Events('backward', [14] * 2)
    self.assertEqual(_Texts(events), ['B0', 'B1'])

  def testFewNarrowBoxesStayEmpty(self):
    events = _Events('forward', [14] * 9 + [4])
    self.assertEqual(_Texts(events), [f'F{i}' for i in range(9)])

  def testTwoDigitsNeedMoreRoom(self):
    events = _Events('backward', [13.5] * 64)
    self.assertEqual(_Texts(events), [str(i) for i in range(64)])

  def testFontShrinks(self):
    sizes = [
      size
      for width in (14, 13, 12)
      for _, _, size in box_labels.Labels(_Events('forward', [width]), 1.0)
    ]
    self.assertEqual(sizes, [9, 8, 7])


if __name__ == '__main__':
  absltest.main()
