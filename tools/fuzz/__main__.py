"""Tries properties on thousands of random cases.

  python -m tools.fuzz --cases=20000

  params      damaged text of Params: an error, or values that print and parse
  override    the same for --model_params_override
  partition   cuts against all others there are
  schedule    tables of passes, and the loop's rows made of them
  checkpoint  damaged files: refused, or read as they were written

The tests run some of the cases; this runs as many as you like.
"""

from __future__ import annotations

import contextlib

from absl import flags

from lingvo_gpipe import quiet_import, user_error
from tools.benchmarks import command, report
from tools.fuzz import runner

NAMES = ('params', 'override', 'partition', 'schedule', 'checkpoint')

_ONLY = flags.DEFINE_list('only', list(NAMES), 'Which properties.')
_CASES = flags.DEFINE_integer('cases', 10_000, 'Of each.', lower_bound=1)
_FIRST = flags.DEFINE_integer('first', 0, 'The first case.', lower_bound=0)
_SEED = flags.DEFINE_integer('seed', 1, 'Of all cases.')


def Main() -> int:
  """The tool; returns the exit status."""
  unknown = [name for name in _ONLY.value if name not in NAMES]
  if unknown:
    raise user_error.UserError(
      f'--only={",".join(_ONLY.value)}: choose from {", ".join(NAMES)}'
    )
  quiet_import.ImportTensorFlow(quiet=True)
  from tools.fuzz import checkpoints, plans, texts

  with contextlib.ExitStack() as stack:
    for name in _ONLY.value:
      check = {
        'params': lambda: texts.ParamsText,
        'override': lambda: texts.Override,
        'partition': lambda: plans.Partition,
        'schedule': lambda: plans.Schedule,
        'checkpoint': lambda: stack.enter_context(checkpoints.Checkpoints()),
      }[name]()

      def _Progress(done: int, name: str = name) -> None:
        if done % 5000 == 0:
          report.Progress(f'{name}: {done} of {_CASES.value}')

      try:
        runner.Run(
          name,
          check,
          cases=_CASES.value,
          first=_FIRST.value,
          seed=_SEED.value,
          progress=_Progress,
        )
      except runner.Failure as e:
        raise user_error.TrainingError(str(e)) from e
      print(f'{name}: {_CASES.value} cases hold', flush=True)
  return 0


if __name__ == '__main__':
  command.Run(Main)
