"""The flags of --job=evaler and --job=decoder, and of predictions."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from absl import flags

from lingvo_gpipe import user_error

_EVAL_ONCE = flags.DEFINE_boolean(
  'eval_once',
  False,
  'The evaler (or decoder) takes the newest checkpoint, whether or not it has '
  'done so before, and ends. Else it follows a run: it takes the newest '
  'checkpoint, waits for newer ones, and ends after the last step of the run.',
)
_EVAL_ALL = flags.DEFINE_boolean(
  'eval_all',
  False,
  'The evaler (or decoder) takes all checkpoints that are there, oldest first, '
  'and ends.',
)
_CHECKPOINT = flags.DEFINE_string(
  'checkpoint',
  '',
  'The evaler (or decoder) takes this checkpoint, such as '
  'DIR/train/ckpt-00000100, and ends. It writes nothing but --predictions.',
  # Tools that take flags of the trainer may have one of their own.
  allow_override=True,
)
_EVAL_TIMEOUT = flags.DEFINE_float(
  'eval_timeout',
  0.0,
  'The evaler (or decoder) gives up after so many seconds without a new '
  'checkpoint. 0: it waits for ever.',
  lower_bound=0.0,
)
_PREDICTIONS = flags.DEFINE_string(
  'predictions',
  '',
  'A file for the predictions of the evaler, or of the evaluation at the end '
  'of training, or what the decoder writes: a line of JSON for each example. A '
  'file that is there is replaced.',
)


@dataclasses.dataclass(frozen=True)
class EvalOptions:
  """The flags of evaluation; see their help texts.

  Attributes:
    once: whether the newest checkpoint only is evaluated.
    all: whether all checkpoints that are there are.
    checkpoint: the prefix of the only one to evaluate; '': none in particular.
    timeout: seconds; 0: none.
    predictions: path; '': none.
  """

  once: bool = False
  all: bool = False
  checkpoint: str = ''
  timeout: float = 0.0
  predictions: str = ''

  def Check(self, jobs: Sequence[str], eval_at_end: bool) -> None:
    """Raises UserError for flags that do not go together.

    Args:
      jobs: of the process: 'trainer', 'evaler', 'decoder'.
      eval_at_end: whether a trainer evaluates.
    """
    ways = {
      '--eval_once': self.once,
      '--eval_all': self.all,
      f'--checkpoint={self.checkpoint}': self.checkpoint,
    }
    given = [flag for flag, value in ways.items() if value]
    timeout = [f'--eval_timeout={self.timeout:g}'] if self.timeout else []
    if 'trainer' in jobs and given + timeout:
      raise user_error.UserError(
        f'{(given + timeout)[0]} is for --job=evaler or decoder, not '
        f'{",".join(jobs)}'
      )
    if len(given) > 1:
      raise user_error.UserError(
        f'{" and ".join(given)} differ in what is taken; give one of them'
      )
    if given and timeout:
      raise user_error.UserError(
        f'{timeout[0]} is for a job that waits, which it does not with '
        f'{given[0]}; leave one of the two out'
      )
    if self.predictions and 'decoder' in jobs and len(jobs) > 1:
      raise user_error.UserError(
        f'--predictions={self.predictions} is one file, but each of --job='
        f'{",".join(jobs)} would write it; give it to a process of one job'
      )
    if self.predictions and tuple(jobs) == ('trainer',) and not eval_at_end:
      raise user_error.UserError(
        f'--predictions={self.predictions} needs an evaluation, which '
        '--noeval_at_end switches off'
      )
    self._CheckPredictions()

  def _CheckPredictions(self) -> None:
    path = os.path.abspath(self.predictions)
    folder = os.path.dirname(path)
    if not self.predictions:
      return
    if os.path.isdir(path):
      problem = 'is a directory; name a file'
    elif not os.path.isdir(folder):
      problem = f'cannot be written: there is no directory {folder}'
    elif not os.access(folder, os.W_OK):
      problem = f'cannot be written: the directory {folder} is read-only'
    else:
      return
    raise user_error.UserError(f'--predictions={self.predictions} {problem}')


def FromFlags() -> EvalOptions:
  """The parsed flags, not checked."""
  return EvalOptions(
    once=_EVAL_ONCE.value,
    all=_EVAL_ALL.value,
    checkpoint=_CHECKPOINT.value,
    timeout=_EVAL_TIMEOUT.value,
    predictions=_PREDICTIONS.value,
  )
