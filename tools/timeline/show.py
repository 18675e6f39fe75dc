"""Prints a recorded step, draws it, and makes a trace of it.

  python -m tools.timeline.show --timeline=/tmp/digits/timeline.json \\
      --picture=/tmp/step.png --trace=/tmp/trace.json

The picture is in the manner of the GPipe paper's Figure 2. The trace opens in
ui.perfetto.dev and in chrome://tracing.
"""

from __future__ import annotations

import json
import os

from absl import flags

from lingvo_gpipe import user_error
from lingvo_gpipe.gpipe.timelines import timeline as timeline_lib
from lingvo_gpipe.gpipe.timelines import (
  timeline_picture,
  timeline_text,
  timeline_trace,
)
from tools.benchmarks import command

_TIMELINE = flags.DEFINE_string(
  'timeline', '', 'The JSON file of a recorded step.'
)
_PICTURE = flags.DEFINE_string('picture', '', 'PNG file to write. Empty: none.')
_TRACE = flags.DEFINE_string(
  'trace', '', 'Trace to write, for ui.perfetto.dev. Empty: none.'
)


def Main() -> int:
  """The tool."""
  if not _TIMELINE.value:
    raise user_error.UserError(
      '--timeline is missing: the JSON file of a recorded step'
    )
  prefix = f'--timeline={_TIMELINE.value}: '
  with user_error.Expected(OSError, ValueError, prefix=prefix):
    with open(_Path(_TIMELINE.value), encoding='utf-8') as f:
      timeline = timeline_lib.FromJson(json.load(f))
  print(timeline_text.TimelineText(timeline))
  with user_error.Expected(OSError):
    if _PICTURE.value:
      timeline_picture.WritePng(timeline, _Path(_PICTURE.value))
    if _TRACE.value:
      with open(_Path(_TRACE.value), 'w', encoding='utf-8') as f:
        json.dump(timeline_trace.ToTrace(timeline), f)
  return 0


def _Path(path: str) -> str:
  """Relative paths begin where the user is, also under `bazel run`."""
  return os.path.join(os.environ.get('BUILD_WORKING_DIRECTORY', ''), path)


if __name__ == '__main__':
  command.Run(Main)
