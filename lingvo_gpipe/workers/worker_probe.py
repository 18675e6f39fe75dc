"""Asks a worker's TensorFlow server whether it is there, and which one it is.

Two remote calls that every such server answers: GetStatus of TensorFlow's
worker service, whose answer holds a number that a server draws when it starts;
and one that no server knows, whose refusal shows that it is alive. The second
does not wait for a processor core that computes.
"""

from __future__ import annotations

import grpc

_STATUS = '/tensorflow.WorkerService/GetStatus'
_UNKNOWN = '/lingvo_gpipe.Nobody/Knows'

# Connections are tried again soon, and never by way of a web proxy.
_OPTIONS = (
  ('grpc.initial_reconnect_backoff_ms', 200),
  ('grpc.min_reconnect_backoff_ms', 200),
  ('grpc.max_reconnect_backoff_ms', 1000),
  ('grpc.enable_http_proxy', 0),
)


class ProbeError(Exception):
  """A worker did not answer; the message says how."""


class RefusedError(ProbeError):
  """Nothing listens at the address."""


class WorkerProbe:
  """A connection to one worker's server.

  Args:
    address: 'host:port'.
  """

  def __init__(self, address: str):
    self.address = address
    self._channel = grpc.insecure_channel(address, options=_OPTIONS)

  def Identity(self, seconds: float) -> bytes:
    """Waits for an answer that differs between servers, also of one address.

    Args:
      seconds: to wait at the most.

    Returns:
      Bytes that stay the same as long as the server runs.

    Raises:
      RefusedError: where nothing listens at the address.
      ProbeError: where nothing has come in time, or what answers is no server
        of TensorFlow.
    """
    try:
      return self._Call(_STATUS, seconds)
    except grpc.RpcError as e:
      raise self._Error(e, seconds) from e

  def CheckAlive(self, seconds: float) -> None:
    """Waits for any sign of life.

    Args:
      seconds: to wait at the most.

    Raises:
      ProbeError: as of Identity.
    """
    try:
      self._Call(_UNKNOWN, seconds)
    except grpc.RpcError as e:
      if e.code() != grpc.StatusCode.UNIMPLEMENTED:
        raise self._Error(e, seconds) from e

  def _Call(self, method: str, seconds: float) -> bytes:
    return self._channel.unary_unary(method)(b'', timeout=seconds)

  def _Error(self, error: grpc.RpcError, seconds: float) -> ProbeError:
    code = error.code()
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
      return ProbeError(f'does not answer within {seconds:g} s')
    if code == grpc.StatusCode.UNIMPLEMENTED:
      return ProbeError("is a server, but not one of TensorFlow's workers")
    details = ' '.join((error.details() or code.name).split())
    if 'refused' in details.lower():
      return RefusedError('refuses connections')
    if 'name' in details.lower() and 'resol' in details.lower():
      return ProbeError('has a name that cannot be resolved')
    return ProbeError(f'cannot be reached ({details})')

  def Close(self) -> None:
    """Ends the connection."""
    self._channel.close()
