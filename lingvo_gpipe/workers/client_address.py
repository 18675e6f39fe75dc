"""Where workers reach the process that is their client.

Results travel from workers to the client's own TensorFlow server. TensorFlow
would call it 'localhost' by itself, which on another machine is that machine.
"""

from __future__ import annotations

import socket

from lingvo_gpipe.workers import free_ports, loopback


def Choose(worker: str, wanted: str = '') -> str:
  """An address of this machine for a server.

  Args:
    worker: 'host:port' of a worker.
    wanted: 'host:port', which is taken as it is, or 'host', which gets a free
      port; '': the address from which packets to the worker leave.

  Returns:
    'host:port'.

  Raises:
    ValueError: where the worker's host is not known, or there is no way to it.
  """
  if wanted.rpartition(':')[2].isdigit() and ':' in wanted:
    return wanted
  host = wanted or _OwnAddress(worker)
  (port,) = free_ports.FreePorts(1)
  return f'{host}:{port}'


def Restrict(address: str) -> bool:
  """Keeps other machines away from a server that needs none of them.

  Args:
    address: 'host:port' of a server of this process.

  Returns:
    Whether other machines cannot connect now.
  """
  host, _, port = address.rpartition(':')
  return loopback.IsLoopback(host) and loopback.Restrict(int(port))


def _OwnAddress(worker: str) -> str:
  host, _, port = worker.rpartition(':')
  host = host.strip('[]')
  try:
    ways = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)
    # A name like localhost may have both kinds of addresses; old ones first.
    ways.sort(key=lambda way: way[0] != socket.AF_INET)
    family, kind, protocol, _, target = ways[0]
    with socket.socket(family, kind, protocol) as s:
      s.connect(target)  # Sends nothing; chooses the way.
      own = s.getsockname()[0]
  except OSError as e:
    raise ValueError(
      f'there is no way to the worker {worker} (--worker_hosts): {e}'
    ) from e
  return f'[{own}]' if ':' in own else own
