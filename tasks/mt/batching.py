"""Buckets: the lengths that rows are padded to, and rows of a mini-batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Bucket(NamedTuple):
  """A shape in which mini-batches come.

  Attributes:
    length: ids of a row, on each side.
    rows: N, of a mini-batch.
  """

  length: int
  rows: int


def Buckets(
  lengths: Sequence[int],
  *,
  batch_tokens: int,
  batch_size: int,
  batch_multiple: int,
) -> tuple[Bucket, ...]:
  """The buckets.

  Args:
    lengths: of rows, ascending.
    batch_tokens: ids of a mini-batch at most, on each side, padding included;
      0: batch_size says how many rows there are.
    batch_size: rows of a mini-batch, whatever their length.
    batch_multiple: what rows must be a multiple of, as M micro-batches of equal
      size need.

  Returns:
    A Bucket for each length.

  Raises:
    ValueError: where this does not work out.
  """
  if not lengths or sorted(set(lengths)) != list(lengths) or lengths[0] < 2:
    raise ValueError(
      f'bucket_lengths={list(lengths)} must be numbers from 2, each larger '
      'than the one before'
    )
  if batch_multiple < 1 or batch_tokens < 0:
    raise ValueError(
      f'batch_multiple={batch_multiple} must be 1 or more, and batch_tokens='
      f'{batch_tokens} 0 or more'
    )
  if not batch_tokens:
    if batch_size % batch_multiple:
      raise ValueError(
        f'batch_size={batch_size} must be a multiple of batch_multiple='
        f'{batch_multiple}, such as '
        f'{-(-batch_size // batch_multiple) * batch_multiple}'
      )
    return tuple(Bucket(length, batch_size) for length in lengths)
  least = lengths[-1] * batch_multiple
  if batch_tokens < least:
    raise ValueError(
      f'batch_tokens={batch_tokens} is too few: batch_multiple='
      f'{batch_multiple} rows of bucket_lengths[-1]={lengths[-1]} ids take '
      f'{least}; raise it, or lower one of the others'
    )
  return tuple(
    Bucket(length, batch_tokens // length // batch_multiple * batch_multiple)
    for length in lengths
  )


def BucketOf(buckets: Sequence[Bucket], lengths: np.ndarray) -> np.ndarray:
  """The smallest bucket that each row fits in.

  Args:
    buckets: see Buckets.
    lengths: int [rows], at most that of the last bucket.

  Returns:
    int64 [rows].
  """
  return np.searchsorted([x.length for x in buckets], lengths)
