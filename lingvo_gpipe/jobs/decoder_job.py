"""--job=decoder: decodes with the checkpoints that a trainer writes.

What it has written lies in decoder_<dataset>/, a file for each checkpoint;
which ones are done stands in decoded.jsonl there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  checkpoint_job,
  checkpoint_watch,
  decode_program,
  eval_program,
  evaluation,
  flags,
  graceful_stop,
  prepared_model,
  progress,
)
from lingvo_gpipe.jobs import logdir as logdir_lib


def OutputPath(logdir: logdir_lib.LogDir, dataset: str, step: int) -> str:
  """Where what was decoded of a dataset at a step is written."""
  return os.path.join(logdir.DecoderDir(dataset), f'decoded-{step:08d}.jsonl')


def RunAll(
  programs: Mapping[str, decode_program.DecodeProgram],
  logdir: logdir_lib.LogDir,
  step: int,
  interrupted: Callable[[], bool],
) -> checkpoint_job.Metrics | None:
  """Decodes all datasets, and notes nothing: a trainer's decoding at the end.

  Args:
    programs: {dataset: program}.
    logdir: of the run.
    step: the step the variables are of.
    interrupted: asked between batches; True gives up.

  Returns:
    {dataset: {score: value}}; None where it was interrupted.
  """
  scores = {}
  for dataset, program in programs.items():
    logdir.Create(logdir.DecoderDir(dataset))
    path = OutputPath(logdir, dataset, step)
    result = program.Run(path, interrupted)
    if result is None:
      return None
    progress.Show(f'{dataset} as decoded at step {step}: {path}')
    scores[dataset] = result.metrics
  return scores


class Decoder(checkpoint_job.CheckpointJob):
  """Decodes with checkpoints one after the other.

  Args:
    options: the flags.
    stop: a wish to stop.
    prepared: the model.
  """

  HISTORY = 'decoded.jsonl'
  SUFFIX = '.decoder'
  RESULTS = 'decoder_results.json'
  DONE = 'decoded'

  def __init__(
    self,
    options: flags.Options,
    stop: graceful_stop.GracefulStop,
    prepared: prepared_model.PreparedModel,
  ):
    self._programs = decode_program.MakePrograms(prepared.task, prepared.inputs)
    if not self._programs:
      raise user_error.UserError(
        f'model {prepared.model.name} has nothing to decode: its task has no '
        'param "decoder"'
      )
    super().__init__(options, stop, prepared, list(self._programs))
    if self._options.predictions and len(self._datasets) > 1:
      raise user_error.UserError(
        f'--predictions={self._options.predictions} is one file, but '
        f'decoder.datasets={self._datasets} are several'
      )

  def _Folder(self, dataset: str) -> str:
    return self._logdir.DecoderDir(dataset)

  def _Process(
    self, found: checkpoint_watch.Found, datasets: Sequence[str]
  ) -> Iterator[tuple[str, eval_program.EvalResult | None]]:
    for name in datasets:
      path = self._options.predictions
      if not path and not self._options.checkpoint:
        path = OutputPath(self._logdir, name, found.step)
      result = self._programs[name].Run(path, lambda: self._stop.requested)
      if result is not None and path:
        progress.Show(f'{name} as decoded at step {found.step}: {path}')
      if result is not None:
        progress.Show(evaluation.StepLine(found.step, name, result))
      yield name, result
