"""Event files of TensorBoard that a full disk does not spoil.

TensorFlow's own writer leaves half a record where the disk is full, and goes on
behind it when there is room again; nobody can read what comes after. Here a
file grows by whole records or not at all, and what is missing comes later.

A record is  length (uint64) | CRC of it | an Event | CRC of that,  the CRCs as
masked CRC-32C (tensorflow/core/lib/io/record_writer.h, lib/hash/crc32c.h).
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from lingvo_gpipe import atomic_file

# What tf.summary.scalar adds.
_SCALAR = tf.compat.v1.SummaryMetadata(
  plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name='scalars'),
  data_class='DATA_CLASS_SCALAR',
)

# What is kept for a later try: some ten thousand scalars.
_MAX_UNWRITTEN = 1 << 20

_numbers = itertools.count()


class EventFile:
  """A new file of scalars by step.

  Args:
    directory: where it is made, with a name of its own.
    suffix: of the name.
  """

  def __init__(self, directory: str, suffix: str = ''):
    name = (
      f'events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.'
      f'{os.getpid()}.{next(_numbers)}{suffix}'
    )
    self.path = os.path.join(directory, name)
    self._unwritten: list[bytes] = []

  def Write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Adds scalars, and what could not be written before.

    Args:
      step: that they are of.
      scalars: {name: number}.

    Raises:
      OSError: where it cannot be written; it is kept for the next call.
    """
    values = [
      tf.compat.v1.Summary.Value(
        tag=name, metadata=_SCALAR, tensor=tf.make_tensor_proto(_Float32(value))
      )
      for name, value in scalars.items()
    ]
    self._unwritten.append(
      _Record(
        tf.compat.v1.Event(
          wall_time=time.time(),
          step=step,
          summary=tf.compat.v1.Summary(value=values),
        )
      )
    )
    while len(self._unwritten) > 1 and self._size > _MAX_UNWRITTEN:
      del self._unwritten[0]
    self.Flush()

  def Flush(self) -> None:
    """Tries to write what could not be written; raises OSError as Write."""
    if not self._unwritten:
      return
    records = self._unwritten
    if not os.path.exists(self.path):  # New, or deleted by somebody.
      first = tf.compat.v1.Event(
        wall_time=time.time(), file_version='brain.Event:2'
      )
      records = [_Record(first), *records]
    atomic_file.Append(self.path, b''.join(records))
    self._unwritten = []

  @property
  def _size(self) -> int:
    return sum(map(len, self._unwritten))


def RecordSize(event: bytes) -> int:
  """How many bytes of a file an event takes, given serialized."""
  return len(event) + 16


def _Float32(value: float) -> np.float32:
  with np.errstate(over='ignore'):  # Becomes infinite.
    return np.float32(value)


def _Record(event: tf.compat.v1.Event) -> bytes:
  data = event.SerializeToString()
  length = struct.pack('<Q', len(data))
  return length + _MaskedCrc(length) + data + _MaskedCrc(data)


def _MaskedCrc(data: bytes) -> bytes:
  """Four bytes; masked, as data that holds its own CRC is not checked well."""
  crc = 0xFFFFFFFF
  for byte in data:
    crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
  crc ^= 0xFFFFFFFF
  rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
  return struct.pack('<I', (rotated + 0xA282EAD8) & 0xFFFFFFFF)


def _CrcTable() -> list[int]:
  """CRC-32C (Castagnoli) of each byte."""
  table = []
  for crc in range(256):
    for _ in range(8):
      crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    table.append(crc)
  return table


_CRC_TABLE = _CrcTable()
