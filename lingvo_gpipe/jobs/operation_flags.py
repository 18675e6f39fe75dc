"""The flags that show what a run is doing: log, watchdog, profiler."""

from __future__ import annotations

import dataclasses
import re

from absl import flags

from lingvo_gpipe import log_lines, user_error

_LOG_FORMAT = flags.DEFINE_enum(
  'log_format',
  'text',
  log_lines.FORMATS,
  'text: lines for people. json: each line is a JSON object with time, '
  'severity (INFO, WARNING or ERROR) and message, and the numbers that it '
  'tells, such as step and loss; for collectors of logs.',
)
_WATCHDOG_SECONDS = flags.DEFINE_float(
  'watchdog_seconds',
  300.0,
  'Tell what the trainer is doing when no step has ended for so many seconds, '
  'and again after twice as long. 0: do not.',
  lower_bound=0.0,
)
_PROFILE_STEPS = flags.DEFINE_string(
  'profile_steps',
  '',
  'FIRST:COUNT, such as 100:5: record those steps with the profiler of '
  'TensorFlow, for the tab "Profile" of TensorBoard with --logdir/train. It '
  'sees this process and its devices; --timeline shows workers, too.',
)


@dataclasses.dataclass(frozen=True)
class OperationOptions:
  """The flags; see their help texts.

  Attributes:
    watchdog_seconds: 0: no watchdog.
    profile_steps: text; '': none.
    log_format: one of log_lines.FORMATS.
  """

  watchdog_seconds: float = 300.0
  profile_steps: str = ''
  log_format: str = 'text'

  def ProfiledSteps(self) -> range:
    """The steps to profile, by how many were done before.

    Raises:
      UserError: for a text that says something else.
    """
    if not self.profile_steps:
      return range(0)
    match = re.fullmatch(r'(\d+):(\d+)', self.profile_steps)
    if not match or not int(match[2]):
      raise user_error.UserError(
        f'--profile_steps={self.profile_steps} is not FIRST:COUNT, such as '
        '100:5 for five steps from step 100 on'
      )
    first, count = map(int, match.groups())
    return range(first, first + count)


def FromFlags() -> OperationOptions:
  """The parsed flags, not checked."""
  return OperationOptions(
    watchdog_seconds=_WATCHDOG_SECONDS.value,
    profile_steps=_PROFILE_STEPS.value,
    log_format=_LOG_FORMAT.value,
  )
