"""--job=decoder: decodes with the checkpoints that a trainer writes.

What it has written lies in decoder_<dataset>/, a file for each checkpoint;
which ones are done stands in decoded.jsonl there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from lingvo_gpipe import user_error
from lingvo_gpipe.jobs import (
  checkpoint_job,
  checkpoint_watch,
  decode_program,
  eval_program,
  flags,
  graceful_stop,
  prepared_model,
  progress,
)
from lingvo_gpipe.jobs import logdir as logdir_lib


def OutputPath(logdir: logdir_lib.LogDir, dataset: str, step: int) -> str:
  """Where what was decoded of a dataset at a step is written."""
  return os.path.join(logdir.DecoderDir(dataset), f'decoded-{step:08d}.jsonl')


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
      yield name, result
