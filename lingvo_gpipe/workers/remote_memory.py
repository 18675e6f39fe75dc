"""Memory of the servers that this process is connected to, on any machine.

TensorFlow's runtime has no call for it. But a server reads files, and on Linux
one of them tells what the process that reads it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import tensorflow as tf

from lingvo_gpipe.workers import process_memory

_STATUS = '/proc/self/status'
_MAX_LINES = 1000


class RemoteMemory:
  """Reads the memory of the servers of some devices.

  Args:
    devices: names with job and task; others are of this process and left out.
  """

  def __init__(self, devices: Iterable[str]):
    self._readers: dict[int, Callable[[], tf.Tensor]] = {}
    for name in devices:
      spec = tf.DeviceSpec.from_string(name)
      if spec.job not in (None, 'localhost') and spec.task is not None:
        self._readers.setdefault(spec.task, _Reader(spec))

  def Read(self) -> dict[int, process_memory.Usage]:
    """Asks all servers, which takes some milliseconds each.

    Returns:
      {task: Usage}, without servers that are no Linux.

    Raises:
      tf.errors.OpError: where a server is not there any more.
    """
    found = {}
    for task, read in list(self._readers.items()):
      try:
        text = read().numpy().decode('ascii', 'replace')
      except tf.errors.NotFoundError:  # There is no such file.
        del self._readers[task]
        continue
      usage = process_memory.Parse(text)
      if usage is not None:
        found[task] = usage
    return found


def _Reader(spec: tf.DeviceSpec) -> Callable[[], tf.Tensor]:
  host = spec.replace(device_type='CPU', device_index=0).to_string()

  @tf.function(autograph=False)
  def _Text() -> tf.Tensor:
    with tf.device(host):
      # Not tf.io.read_file: the system says that this file has 0 bytes.
      lines = tf.data.TextLineDataset(_STATUS).batch(_MAX_LINES)
      return tf.strings.reduce_join(lines.get_single_element(), separator='\n')

  return _Text
