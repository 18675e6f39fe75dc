"""Memory of a process as Linux counts it: resident now, and at its peak.

Resident memory (RSS) holds all that the process has touched, TensorFlow's own
code included: a worker with nothing to do has some 0.65 GiB.
"""

from __future__ import annotations

import dataclasses
import os
import re

_UNITS = {'': 1, 'K': 2**10, 'M': 2**20, 'G': 2**30, 'T': 2**40}
_SIZE = re.compile(r'(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:i?B)?', re.IGNORECASE)

# What /proc/<pid>/clear_refs takes to reset the peak; man 5 proc.
_RESET_PEAK = '5'


@dataclasses.dataclass(frozen=True)
class Usage:
  """Resident memory in bytes.

  Attributes:
    current: now.
    peak: the most there was since the start, or since ResetPeak.
  """

  current: int
  peak: int


def Read(pid: int) -> Usage:
  """Reads a process's memory.

  Args:
    pid: the process.

  Returns:
    Its Usage.

  Raises:
    ProcessLookupError: where it has ended.
  """
  usage = None
  try:
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
      usage = Parse(f.read())
  except FileNotFoundError:
    pass
  if usage is None:
    raise ProcessLookupError(f'process {pid} has ended')
  return usage


def Parse(status: str) -> Usage | None:
  """The Usage that the text of /proc/<pid>/status tells.

  Args:
    status: the text.

  Returns:
    The Usage; None of a process that has ended and nobody has waited for.
  """
  found = {}
  for line in status.splitlines():
    name, unused_colon, value = line.partition(':')
    if name in ('VmRSS', 'VmHWM'):
      found[name] = int(value.split()[0]) * 1024
  return Usage(found['VmRSS'], found['VmHWM']) if found else None


def ResetPeak(pid: int) -> None:
  """Makes the peak of a process what it has now.

  Args:
    pid: a process of the same user.

  Raises:
    ProcessLookupError: where it has ended.
  """
  try:
    # A write that fails would be tried again in closing a buffered file.
    descriptor = os.open(f'/proc/{pid}/clear_refs', os.O_WRONLY)
  except FileNotFoundError:
    raise ProcessLookupError(f'process {pid} has ended') from None
  try:
    os.write(descriptor, _RESET_PEAK.encode())
  finally:
    os.close(descriptor)


def ParseSize(text: str) -> int:
  """Bytes of a size as people write it; units are powers of 1024.

  Args:
    text: such as '1.5G', '800M', '2 GiB' or '1000000'.

  Returns:
    Bytes.

  Raises:
    ValueError: where it is no size, or none above 0.
  """
  match = _SIZE.fullmatch(text.strip())
  size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
  if size <= 0:
    raise ValueError(
      f'{text!r} is not a size of memory; write for example 1.5G or 800M'
    )
  return size


def FormatSize(size: int) -> str:
  """A size in GiB or MiB, such as '1.50 GiB'."""
  if size >= 2**30:
    return f'{size / 2**30:.2f} GiB'
  return f'{size / 2**20:.0f} MiB'
