"""The inputs of translation that are measured, and measuring one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tasks.mt import translation_input


class Speed(NamedTuple):
  """What an input gave.

  Attributes:
    pairs: sentence pairs per second.
    pairs_per_core: per second that the process was on a processor, which other
      work on the machine changes little.
    ids: per second, of both sides, without padding.
    fill: share of the places that are no padding.
  """

  pairs: float
  pairs_per_core: float
  ids: float
  fill: float


def Inputs(
  data_dir: str, batch_tokens: int
) -> dict[str, translation_input.TranslationInput]:
  """Inputs over the training data of a folder.

  Args:
    data_dir: prepared data.
    batch_tokens: see TranslationInput.

  Returns:
    {what it is: input}.
  """
  modes = {
    'buckets': {'training': True},
    'packed': {'training': True, 'packing': True},
    'evaluation': {},
  }
  return {
    name: translation_input.TranslationInput.Params()
    .Set(data_dir=data_dir, batch_tokens=batch_tokens, **params)
    .Instantiate()
    for name, params in modes.items()
  }


def Measure(
  generator: translation_input.TranslationInput,
  seconds: float,
  now: Callable[[], float],
  busy: Callable[[], float],
) -> Speed:
  """Reads mini-batches for a while, again from the start where they end.

  Args:
    generator: the input.
    seconds: how long; building and filling the pipeline come before.
    now: seconds from any start.
    busy: seconds of all processors that the process has taken.

  Returns:
    The Speed.
  """
  batches = iter(generator.Dataset().repeat())
  next(batches)
  kept, start, busy_start = [], now(), busy()
  while now() - start < seconds:
    kept.append(next(batches))
  elapsed, busy_elapsed = now() - start, busy() - busy_start
  # Counting is no part of the input.
  pairs = ids = places = 0
  for batch in kept:
    segments = batch.get('target_segment_ids')
    pairs += int(
      batch['weights'].numpy().sum()
      if segments is None
      else segments.numpy().max(1).sum()
    )
    for side in ('source', 'target'):
      padded = batch[f'{side}_paddings'].numpy()
      ids += int(padded.size - np.count_nonzero(padded))
      places += padded.size
  return Speed(
    pairs / elapsed, pairs / busy_elapsed, ids / elapsed, ids / places
  )
