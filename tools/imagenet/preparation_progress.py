"""How far the preparation of a dataset is: reading archives, writing files."""

from __future__ import annotations

import dataclasses
import glob
import os
import threading
import time
from collections.abc import Callable

from lingvo_gpipe.jobs import progress


@dataclasses.dataclass
class _Phase:
  """One part of the work, counted in bytes."""

  text: str
  start: float
  total: int
  images: int = 0
  done: int = 0


class PreparationProgress:
  """Prints a line now and then, from a thread of its own.

  TFDS first reads all of an archive, shuffling it into temporary files, and
  then writes the files of the dataset.

  Args:
    folder: that TFDS makes the folder of its files in.
    interval: seconds between two lines.
    now: seconds from any start.
    show: prints a line.

  Attributes:
    images: read so far, of all archives.
  """

  def __init__(
    self,
    folder: str,
    *,
    interval: float,
    now: Callable[[], float] = time.monotonic,
    show: Callable[[str], None],
  ):
    self._folder = folder
    self._interval = interval
    self._now = now
    self._show = show
    self._phase: _Phase | None = None
    self.images = 0
    self._stop = threading.Event()
    self._thread = threading.Thread(target=self._Run, daemon=True)

  def __enter__(self) -> PreparationProgress:
    self._start = self._now()
    self._thread.start()
    return self

  def __exit__(self, *unused_exception) -> None:
    self._stop.set()
    self._thread.join()

  def _Run(self) -> None:
    while not self._stop.wait(self._interval):
      line = self.Line()
      if line:
        self._show(line)

  def StartReading(self, archive: str) -> None:
    """Begins to read an archive."""
    self._phase = _Phase(
      f'reading {os.path.basename(archive)}',
      self._now(),
      os.path.getsize(archive),
    )
    self._show(self._phase.text)

  def Add(self, num_bytes: int) -> None:
    """Notes that a picture was read."""
    self._phase.images += 1
    self._phase.done += num_bytes
    self.images += 1

  def StartWriting(self, split: str) -> None:
    """Begins to write the files of what was read."""
    read = self._phase
    self._show(f'{read.text}: {read.images:,} images')
    self._phase = _Phase(
      f'writing the files of {split}', self._now(), read.done, read.images
    )
    self._before = self._Written()
    self._show(self._phase.text)

  def _Written(self) -> int:
    """Bytes of record files, finished or not."""
    paths = glob.glob(
      os.path.join(self._folder, '**', '*tfrecord*'), recursive=True
    )
    sizes = []
    for path in paths:
      try:
        sizes.append(os.path.getsize(path))
      except FileNotFoundError:  # It was renamed.
        pass
    return sum(sizes)

  def Line(self) -> str:
    """How far the present phase is; '' before anything can be said."""
    phase = self._phase
    if phase is None:
      return ''
    is_reading = phase.text.startswith('reading')
    done = phase.done if is_reading else self._Written() - self._before
    seconds = self._now() - phase.start
    if done <= 0 or seconds <= 0:
      return ''
    share = min(1.0, done / phase.total)
    images = phase.images if is_reading else share * phase.images
    return (
      f'{phase.text} {share:.1%} {images:,.0f} images '
      f'{progress.Rate(images / seconds)} images/s '
      f'ETA {progress.Duration(seconds / share - seconds)}'
    )

  def Summary(self) -> str:
    """What was done in which time."""
    seconds = self._now() - self._start
    return f'{self.images:,} images in {progress.Duration(seconds)}'
