"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import contextlib
import random
import socket

_EPHEMERAL = '/proc/sys/net/ipv4/ip_local_port_range'
_LEAST = 10_000
_TRIES = 100


def FreePorts(count: int) -> list[int]:
  """Finds ports for servers that cannot be told to take any.

  They are free when this returns; somebody else may take them before the server
  does. So they are none of those that the system gives to any connection that
  is opened meanwhile, if there are others.

  Args:
    count: how many.

  Returns:
    The ports, all different.
  """
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
    for s in sockets:
      _Bind(s)
    return [s.getsockname()[1] for s in sockets]


def _Bind(s: socket.socket) -> None:
  """Binds to a free port below those of connections, else to any free one."""
  last = _FirstEphemeral() - 1
  for _ in range(_TRIES if last > _LEAST else 0):
    try:
      return s.bind(('', random.SystemRandom().randint(_LEAST, last)))
    except OSError:  # Taken.
      continue
  s.bind(('', 0))


def _FirstEphemeral() -> int:
  """The first port that the system chooses by itself; 0: not known."""
  try:
    with open(_EPHEMERAL) as f:
      return int(f.read().split()[0])
  except (OSError, ValueError, IndexError):
    return 0
