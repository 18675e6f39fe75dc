"""Files of tokenised pairs: TFRecord shards, raw text, and an index of both.

A record is a tf.train.Example with two int64 lists,
  source  tag of the language to translate into, pieces, eos
  target  pieces, eos
without padding. A group is a direction: `de` is en->de, `de-en` is de->en. A
shard is called train-de-00000-of-00001.tfrecord, raw text of the same pairs in
the same order dev.de.tsv. The index, data.json, is:

  format        1
  vocab, vocab_size, vocab_sha256   the file of the vocabulary, ids, and hash
  tags          {language: id}
  directions    'en-xx', 'xx-en' or 'both'
  languages     {language: {split: number of pairs}}
  files         {split: {group: [shard, ...]}}
  counts        {shard: number of records}
  text          {split: {group: file}}, of dev and test
  tokens        {split: {group: [ids of sources, ids of targets]}}
  source, jaccard, temperature, read, dropped, left_out   how it was made
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import user_error
from tasks.mt import parallel_text, preparation_options

FORMAT = 1
VOCAB_FILE = 'vocab.model'


class Record(NamedTuple):
  """The ids of a pair."""

  source: Sequence[int]
  target: Sequence[int]


def Group(language: str, *, into_english: bool) -> str:
  """The name of a direction."""
  return f'{language}-{parallel_text.ENGLISH}' if into_english else language


def Serialize(record: Record) -> bytes:
  """A record as it stands in a shard."""
  features = {
    name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
    for name, ids in record._asdict().items()
  }
  return tf.train.Example(
    features=tf.train.Features(feature=features)
  ).SerializeToString(deterministic=True)


def WriteShards(
  folder: str,
  split: str,
  group: str,
  records: Sequence[Record],
  *,
  records_per_shard: int = 250_000,
) -> dict[str, int]:
  """Writes the shards of a group, in order and of nearly equal size.

  Args:
    folder: to write to; it must not be where anybody reads yet.
    split: of the records.
    group: likewise.
    records: one or more.
    records_per_shard: at most.

  Returns:
    {shard: number of records}.
  """
  size = len(records)
  shards = -(-size // records_per_shard)
  counts = {}
  with user_error.Expected(tf.errors.OpError, prefix=f'{folder}: '):
    for i in range(shards):
      name = f'{split}-{group}-{i:05d}-of-{shards:05d}.tfrecord'
      part = records[size * i // shards : size * (i + 1) // shards]
      with tf.io.TFRecordWriter(os.path.join(folder, name)) as writer:
        for record in part:
          writer.write(Serialize(record))
      counts[name] = len(part)
  return counts


def WriteText(
  folder: str, split: str, group: str, rows: Sequence[tuple[str, str]]
) -> str:
  """Writes raw text, a line `source <tab> target` for each record.

  Args:
    folder: to write to.
    split: of the records.
    group: likewise.
    rows: (source, target), without tabs and ends of line.

  Returns:
    The name of the file.
  """
  name = f'{split}.{group}.tsv'
  path = os.path.join(folder, name)
  with open(path, 'w', encoding='utf-8', newline='\n') as f:
    f.writelines(f'{source}\t{target}\n' for source, target in rows)
  return name


def WriteIndex(folder: str, index: dict[str, Any]) -> None:
  """Writes data.json."""
  path = os.path.join(folder, preparation_options.INDEX_FILE)
  with open(path, 'w', encoding='utf-8') as f:
    json.dump(index, f, indent=1, ensure_ascii=False)
    f.write('\n')
