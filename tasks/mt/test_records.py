"""Reads record files, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import tensorflow as tf

from tasks.mt import record_files

_FEATURES = {
  name: tf.io.RaggedFeature(tf.int64) for name in record_files.Record._fields
}


def Read(folder: str, shards: Iterable[str]) -> Iterator[record_files.Record]:
  """The records of some shards, with lists of ids."""
  paths = [os.path.join(folder, x) for x in shards]
  for serialized in tf.data.TFRecordDataset(paths):
    found = tf.io.parse_single_example(serialized, _FEATURES)
    yield record_files.Record(
      *(found[x].numpy().tolist() for x in record_files.Record._fields)
    )
