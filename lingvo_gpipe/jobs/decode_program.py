"""Decoding: one pass over a dataset, written to a file and scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_decoder, base_input, cluster, user_error
from lingvo_gpipe.jobs import eval_batches, eval_program, progress

# Seconds between two lines of progress.
_SHOW_SECONDS = 10.0


def MakePrograms(
  task: Any, inputs: Mapping[str, base_input.BaseInput]
) -> dict[str, DecodeProgram]:
  """The programs of the datasets that a task's decoder is for.

  Args:
    task: a planned BaseTask; its param `decoder` may be None.
    inputs: {'train', 'dev' or 'test': input}.

  Returns:
    {dataset: program}, empty without a decoder.

  Raises:
    UserError: where the decoder's params do not fit.
  """
  params = task.params.decoder
  if params is None:
    return {}
  names = params.datasets or [name for name in inputs if name == 'test']
  missing = [name for name in names if name not in inputs]
  if missing:
    raise user_error.UserError(
      f'decoder.datasets names {missing[0]!r}, but the data of the model is '
      f'{", ".join(sorted(inputs))}'
    )
  with user_error.Expected(ValueError, prefix='decoder: '):
    return {
      name: DecodeProgram(
        task,
        params.Instantiate(net=task.net, input_generator=inputs[name]),
        name,
      )
      for name in names
    }


class DecodeProgram:
  """Decodes one dataset, as often as wanted.

  Args:
    task: a BaseTask with variables.
    decoder: of the dataset.
    name: of the dataset, such as 'test'.
    now: seconds from any start.
    show: prints a line of progress.
  """

  def __init__(
    self,
    task: Any,
    decoder: base_decoder.BaseDecoder,
    name: str,
    *,
    now: Callable[[], float] = time.monotonic,
    show: Callable[[str], None] = progress.Show,
  ):
    self.name = name
    self._decoder = decoder
    self._now = now
    self._show = show
    self._weights_field = task.net.params.weights_field
    self._step = tf.function(
      cluster.ReturnToClient(
        lambda batch: decoder.Decode(task.EvalTheta(), batch)
      ),
      autograph=False,
    )

  def Run(
    self, path: str, interrupted: Callable[[], bool] = lambda: False
  ) -> eval_program.EvalResult | None:
    """Decodes with the variables as they are.

    Args:
      path: of the file to write; '' for none.
      interrupted: asked before every batch; True gives up.

    Returns:
      The result, of which the metrics are scores; None where it was
      interrupted.

    Raises:
      ValueError: where there is no data.
      UserError: for data that cannot be read, or a file that cannot be written.
    """
    rows: list[Any] = []
    num_batches, first = 0, 0
    start = after_first = shown = self._now()
    total = self._decoder.input.num_examples
    for batch in eval_batches.Read(self._decoder.input):
      if interrupted():
        return None
      keep = eval_batches.IsExample(batch, self._weights_field)
      outputs = self._step(batch)
      rows += self._decoder.Rows(
        {name: x.numpy()[keep] for name, x in batch.items()},
        {name: x.numpy()[keep] for name, x in outputs.items()},
      )
      num_batches += 1
      now = self._now()
      if num_batches == 1:
        after_first, first = now, len(rows)
      if now - shown >= _SHOW_SECONDS:
        shown = now
        self._show(f'decoding {self.name}: {len(rows)} of {total}')
    if not rows:
      raise ValueError(
        f'the {self.name} data gave no examples: there is nothing to decode; '
        'check its input params'
      )
    end = self._now()
    if path:
      with user_error.Expected(OSError):
        self._decoder.Write(path, rows)
    skip = first if num_batches > 1 else 0
    seconds = end - (after_first if skip else start)
    return eval_program.EvalResult(
      self._decoder.Scores(rows),
      num_batches,
      len(rows),
      (len(rows) - skip) / max(seconds, 1e-9),
    )
