"""Trainings that differ in the size of their mini-batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from lingvo_gpipe import child_process, user_error
from tools.benchmarks import report


def Train(
  model: str,
  tokens: int,
  steps: int,
  logdir: str,
  *,
  override: str,
  args: Sequence[str],
) -> dict[str, Any]:
  """Trains a translation model, as its user would.

  Args:
    model: registered name.
    tokens: of a mini-batch on each side, padding included.
    steps: of training.
    logdir: of the run; one that is there is continued.
    override: further changes to the params.
    args: further flags of the trainer.

  Returns:
    A row: tokens, steps, seconds of training, and of the test data chrF, BLEU,
    the negative log-likelihood of a token (nats) without label smoothing.

  Raises:
    UserError: where the trainer fails.
  """
  report.Progress(f'{tokens} tokens: {steps} steps in {logdir}')
  changes = ';'.join(filter(None, [f'input.batch_tokens={tokens}', override]))
  done = subprocess.run(
    [
      *(sys.executable, '-P', '-m', 'lingvo_gpipe.trainer'),
      f'--model={model}',
      f'--logdir={logdir}',
      f'--max_steps={steps}',
      f'--model_params_override={changes}',
      *args,
    ],
    env=child_process.Environment(),
    # The table is what standard output is for.
    stdout=sys.stderr,
    check=False,
  )
  if done.returncode:
    raise user_error.UserError(
      f'the trainer ended with status {done.returncode}; what it says is above'
    )
  return Row(logdir, tokens)


def Row(logdir: str, tokens: int) -> dict[str, Any]:
  """Reads what a training came to.

  Args:
    logdir: of the run.
    tokens: of its mini-batches.

  Returns:
    See Train.
  """
  with open(os.path.join(logdir, 'results.json'), encoding='utf-8') as f:
    results = json.load(f)
  return {
    'tokens': tokens,
    'steps': results['global_step'],
    'seconds': results['train_seconds'],
    'nll': results['test']['log_pplx'],
    'chrf': results['test'].get('chrf'),
    'bleu': results['test'].get('bleu'),
  }
