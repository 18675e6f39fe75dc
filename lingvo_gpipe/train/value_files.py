"""Values of variables to and from checkpoint files, by functions traced once.

tf.train.Checkpoint traces a new function each time that it writes or reads, and
workers never free functions: a megabyte of each for every checkpoint of a long
run. Here the path is an argument, and all checkpoints are written by the same
function. The files are those of tf.train.Checkpoint.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping

import tensorflow as tf

from lingvo_gpipe.gpipe import device_names
from lingvo_gpipe.train import checkpoint_integrity


class ValueFiles:
  """Writes and reads one set of variables; in one thread at a time.

  Args:
    variables: {name in the files: variable}.
    io_device: the device that reads and writes; None: the processor of each
      variable's host.
  """

  def __init__(
    self, variables: Mapping[str, tf.Variable], io_device: str | None = None
  ):
    self._variables = dict(variables)
    self._io_device = io_device
    self._checkpoint = tf.train.Checkpoint(variables=self._variables)
    self._options = tf.train.CheckpointOptions(experimental_io_device=io_device)
    self._write = tf.function(self._WriteAll, autograph=False)
    self._read = tf.function(self._Assign, autograph=False)

  def Write(self, prefix: str) -> None:
    """Writes the values; raises tf.errors.OpError where it cannot."""
    self._write(tf.constant(prefix))

  def Read(self, prefix: str) -> None:
    """Sets the variables to what files hold.

    Args:
      prefix: of files that have all variables, with their shapes and dtypes.

    Raises:
      tf.errors.OpError: where it cannot. Some variables may have changed.
    """
    self._read(tf.constant(prefix))

  def _WriteAll(self, prefix: tf.Tensor) -> None:
    # What TensorFlow says of the objects goes to the files of one of the hosts.
    hosts = [self._Host(v) for v in self._variables.values()]
    with tf.device(hosts[0] if hosts else None):
      self._checkpoint.write(prefix, self._options)

  def _Host(self, variable: tf.Variable) -> str:
    return self._io_device or device_names.HostOf(variable.device)

  def _Assign(self, prefix: tf.Tensor) -> None:
    by_host = collections.defaultdict(list)
    for name, variable in self._variables.items():
      by_host[self._Host(variable)].append(
        (checkpoint_integrity.Key(name), variable)
      )
    for host, variables in by_host.items():
      with tf.device(host):
        values = tf.raw_ops.RestoreV2(
          prefix=prefix,
          tensor_names=[key for key, _ in variables],
          shape_and_slices=[''] * len(variables),
          dtypes=[variable.dtype for _, variable in variables],
        )
      for (_, variable), value in zip(variables, values, strict=True):
        with tf.device(variable.device):
          variable.assign(tf.ensure_shape(value, variable.shape))


class Snapshot:
  """The values that variables had, to be written while they change.

  Each value stays on its device, in memory that variable and copy share until
  the variable changes: TensorFlow then leaves the old value to the copy. So
  taking it is quick, and it takes as much memory as the variables a step later,
  until it is dropped.

  Args:
    variables: {name in the files: variable}.
    io_device: see ValueFiles.
  """

  def __init__(
    self, variables: Mapping[str, tf.Variable], io_device: str | None = None
  ):
    self._variables = dict(variables)
    self._copies = {}
    for name, variable in self._variables.items():
      with tf.device(variable.device):
        self._copies[name] = tf.Variable(
          _Nothing(variable), trainable=False, shape=tf.TensorShape(None)
        )
    self._files = ValueFiles(self._copies, io_device)

  def Take(self) -> None:
    """Takes the present values, in place of those of before."""
    for name, variable in self._variables.items():
      with tf.device(variable.device):
        self._copies[name].assign(variable.read_value())

  def Write(self, prefix: str) -> None:
    """Writes them; raises tf.errors.OpError where it cannot."""
    self._files.Write(prefix)

  def Drop(self) -> None:
    """Frees their memory."""
    for name, variable in self._variables.items():
      with tf.device(variable.device):
        self._copies[name].assign(_Nothing(variable))


def _Nothing(variable: tf.Variable) -> tf.Tensor:
  return tf.zeros([0], variable.dtype)
