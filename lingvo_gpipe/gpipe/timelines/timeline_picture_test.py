"""Tests of timeline_picture: reads the PNG files back."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
from absl.testing import absltest, parameterized
from matplotlib import image

from lingvo_gpipe import child_process
from lingvo_gpipe.gpipe.timelines import simulated_times, timeline_picture
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib


def _Timeline(schedule, num_partitions, num_micro_batches, num_devices):
  times = simulated_times.Uniform(
    schedule, num_partitions, num_micro_batches, num_devices, transfer=0.05
  )
  return timeline_lib.FromTimes(
    times,
    devices=simulated_times.Workers(num_partitions, num_devices),
    schedule=schedule,
    policies='partition',
    model='a.Model',
  )


def _Pixels(figure):
  """[height, width, 3] of the PNG file, from 0 to 1."""
  png = io.BytesIO()
  figure.savefig(png, format='png')
  png.seek(0)
  return image.imread(png)[..., :3]


def _ToPixel(figure, pixels, seconds, lane):
  """(row, column) of a time in a lane; the axis counts seconds."""
  (axes,) = figure.axes
  x, y = axes.transData.transform((seconds, lane))
  return int(pixels.shape[0] - y), int(x)


class DrawTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('GPipe', 'gpipe', 4, 4, 4),
    ('1F1B', '1f1b', 3, 6, 3),
    ('Interleaved', 'interleaved', 6, 4, 2),
    ('One', '1f1b', 1, 3, 1),
    ('Large', '1f1b', 16, 64, 16),
  )
  def testBoxesAndIdleTime(self, schedule, k, m, d):
    timeline = _Timeline(schedule, k, m, d)
    figure = timeline_picture.Draw(timeline)
    pixels = _Pixels(figure)
    expected = figure.get_size_inches() * timeline_picture.DPI
    np.testing.assert_allclose(pixels.shape[1::-1], expected, atol=1)
    self.assertLess(max(pixels.shape), 4000)

    for event in timeline.events:
      # Near the upper edge, where there is no label.
      lane = timeline.device_names.index(event.device) - 0.35
      middle = (event.start + event.end) / 2
      pixel = pixels[_ToPixel(figure, pixels, middle, lane)]
      chunk = event.partition // d
      color = timeline_picture.Color(event.kind, chunk, k // d)
      np.testing.assert_allclose(pixel, color, atol=0.02, err_msg=str(event))

    # Where nothing runs: grey hatching.
    for lane, device in enumerate(timeline.device_names):
      last = max(e.end for e in timeline.events if e.device == device)
      if last < timeline.step_seconds - 0.5:
        top, left = _ToPixel(figure, pixels, last, lane - 0.4)
        bottom, right = _ToPixel(
          figure, pixels, timeline.step_seconds, lane + 0.4
        )
        idle = pixels[top:bottom, left + 3 : right - 3]
        np.testing.assert_allclose(np.ptp(idle, axis=2), 0, atol=0.01)
        self.assertGreater(idle.min(), 0.7)
        self.assertGreater(np.ptp(idle), 0.05)

  def testTexts(self):
    figure = timeline_picture.Draw(_Timeline('interleaved', 4, 4, 2))
    (axes,) = figure.axes
    self.assertEqual(
      [label.get_text() for label in axes.get_yticklabels()],
      ['worker 0\npartitions 0, 2', 'worker 1\npartitions 1, 3'],
    )
    title, caption = [text.get_text() for text in figure.texts]
    self.assertEqual(
      title,
      'a.Model, 4 partitions on 2 devices, 4 micro-batches, schedule '
      'interleaved, rematerialize partition',
    )
    self.assertRegex(
      caption,
      r'^Step: [\d.]+ s. Bubble: measured [\d.]+%, 11.1% in theory.*\nShades: ',
    )
    legend = [text.get_text() for text in figure.legends[0].texts]
    self.assertEqual(
      legend, ['forward (F)', 'recompute (R)', 'backward (B)', 'idle']
    )
    labels = [text.get_text() for text in axes.texts]
    # 4 partitions x 4 micro-batches, and all but the last recompute.
    self.assertLen([x for x in labels if x.startswith('busy')], 2)
    self.assertLen([x for x in labels if x.startswith('$R_{2{,}')], 4)
    self.assertLen([x for x in labels if x.startswith('$B_{3{,}')], 4)
    self.assertLen(labels, 2 + 16 + 16 + 12)

  def testTextsAreWithinTheFigureAndApart(self):
    figure = timeline_picture.Draw(_Timeline('1f1b', 4, 8, 4))
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    width, height = figure.get_size_inches() * timeline_picture.DPI
    (axes,) = figure.axes
    boxes = [t.get_window_extent(renderer) for t in figure.texts]
    boxes += [axes.xaxis.label.get_window_extent(renderer)]
    boxes += [figure.legends[0].get_window_extent(renderer)]
    boxes += [t.get_window_extent(renderer) for t in axes.get_yticklabels()]
    boxes += [t.get_window_extent(renderer) for t in axes.texts]
    for i, box in enumerate(boxes):
      self.assertGreaterEqual(box.x0, 0)
      self.assertGreaterEqual(box.y0, 0)
      self.assertLessEqual(box.x1, width)
      self.assertLessEqual(box.y1, height)
      for other in boxes[:i]:
        self.assertFalse(box.overlaps(other))


class ColorTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 4)
  def testColorsDiffer(self, num_chunks):
    colors = [
      timeline_picture.Color(kind, chunk, num_chunks)
      for kind in timeline_lib.KINDS
      for chunk in range(num_chunks)
    ]
    for i, color in enumerate(colors):
      self.assertBetween(color.min(), 0, 1)
      self.assertBetween(color.max(), 0, 1)
      for other in colors[:i]:
        self.assertGreater(np.abs(color - other).max(), 0.1)

  def testShadesDarken(self):
    sums = [timeline_picture.Color('forward', c, 5).sum() for c in range(5)]
    self.assertEqual(sums, sorted(sums, reverse=True))


class ImportTest(absltest.TestCase):
  def testMatplotlibIsImportedOnlyToDraw(self):
    code = (
      'import sys\n'
      'from lingvo_gpipe.gpipe.timelines import simulated_times, timeline\n'
      'from lingvo_gpipe.gpipe.timelines import timeline_picture\n'
      'assert "matplotlib" not in sys.modules\n'
      'step = timeline.FromTimes(simulated_times.Uniform("1f1b", 1, 1), '
      'devices=["a"], schedule="1f1b", policies="none")\n'
      'timeline_picture.Draw(step)\n'
      'assert "matplotlib" in sys.modules\n'
      'assert "matplotlib.pyplot" not in sys.modules\n'
      'assert "tensorflow" not in sys.modules\n'
    )
    subprocess.run(
      [sys.executable, '-c', code],
      check=True,
      env={'PYTHONPATH': child_process.PythonPath()},
    )


if __name__ == '__main__':
  absltest.main()
