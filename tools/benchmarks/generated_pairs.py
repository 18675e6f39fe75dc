"""Record files of random ids, for measuring the input of translation."""

from __future__ import annotations

import numpy as np

from tasks.mt import record_files

_VOCAB_SIZE = 32_000
_FIRST_PIECE = 400
_EOS = 3
_SPLIT = 'train'

# A mean of 26 ids, as prepared data has, with a long tail.
_MEAN_LOG, _DEVIATION_LOG = 3.0, 0.7
_LONGEST = 120


def Write(folder: str, *, num_pairs: int, num_groups: int) -> None:
  """Writes a folder such as tools/mt/prepare does, of training data only.

  The largest group is many times as large as the smallest, as languages are.

  Args:
    folder: to write to.
    num_pairs: of all groups together.
    num_groups: directions from English.
  """
  rng = np.random.default_rng(0)
  shares = 1.0 / np.arange(1, num_groups + 1)
  sizes = np.maximum(num_pairs * shares / shares.sum(), 1).astype(int)
  index = {
    'format': record_files.FORMAT,
    'vocab': record_files.VOCAB_FILE,
    'vocab_size': _VOCAB_SIZE,
    'vocab_sha256': '',
    'languages': {},
    'files': {_SPLIT: {}},
    'counts': {},
    'text': {},
    'tokens': {_SPLIT: {}},
  }
  for i, size in enumerate(sizes):
    group = f'x{i:03d}'
    records = _Records(rng, size)
    shards = record_files.WriteShards(folder, _SPLIT, group, records)
    index['languages'][group] = {_SPLIT: int(size)}
    index['files'][_SPLIT][group] = list(shards)
    index['counts'] |= shards
    index['tokens'][_SPLIT][group] = [
      sum(len(x.source) for x in records),
      sum(len(x.target) for x in records),
    ]
  record_files.WriteIndex(folder, index)


def _Records(rng: np.random.Generator, size: int) -> list[record_files.Record]:
  lengths = rng.lognormal(_MEAN_LOG, _DEVIATION_LOG, size)
  # The translation is about as long.
  lengths = lengths * rng.uniform(0.8, 1.2, [2, size])
  lengths = np.clip(lengths, 2, _LONGEST).astype(int)
  sides = []
  for own in lengths:
    ids = rng.integers(_FIRST_PIECE, _VOCAB_SIZE, own.sum())
    ends = np.cumsum(own)
    ids[ends - 1] = _EOS
    sides.append(np.split(ids, ends[:-1]))
  return [
    record_files.Record(source.tolist(), target.tolist())
    for source, target in zip(*sides, strict=True)
  ]
