"""Whether the machines of a cluster see the same files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import tensorflow as tf

from lingvo_gpipe.gpipe import device_names


def NotSeenBy(directory: str, devices: Sequence[str]) -> list[str]:
  """Which of a cluster's tasks do not see a directory of this process.

  Args:
    directory: where a file is made and removed again; where that cannot be,
      any file that is there serves.
    devices: of connected workers.

  Returns:
    The processors of those tasks.
  """
  hosts = dict.fromkeys(map(device_names.HostOf, devices))
  try:
    with tempfile.NamedTemporaryFile(dir=directory, prefix='.shared-') as f:
      return [host for host in hosts if not _Sees(host, f.name)]
  except OSError:
    paths = [os.path.join(directory, x) for x in sorted(os.listdir(directory))]
    return [host for host in hosts if not all(_Sees(host, p) for p in paths)]


def _Sees(host: str, path: str) -> bool:
  with tf.device(host):
    return bool(tf.size(tf.raw_ops.MatchingFiles(pattern=path)).numpy())
