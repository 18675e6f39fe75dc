"""Several hosts on one machine: network namespaces behind a bridge.

  host 0    eth0 10.86.0.1 ---.
  host 1    eth0 10.86.0.2 ----+-- bridge, in a namespace of its own
  host 2    eth0 10.86.0.3 ---'

Processes of different hosts reach each other by these addresses only, links can
be cut and slowed down. The machine's own network is left alone. It needs Linux,
root and the commands `ip` and (for slow links) `tc` of iproute2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from lingvo_gpipe import user_error

_NETWORK = '10.86.0'


class EmulatedHosts:
  """A context manager: the hosts are there within its block.

  Args:
    num_hosts: how many, 250 at the most.
    bits_per_second: of each link, in each direction; None: as it is.
    delay: seconds that each link adds, in each direction.

  Raises:
    UserError: where the system does not allow it.
  """

  def __init__(
    self,
    num_hosts: int,
    bits_per_second: float | None = None,
    delay: float = 0.0,
  ):
    if not 1 <= num_hosts <= 250:
      raise ValueError(f'num_hosts={num_hosts} must be 1 to 250')
    self._num_hosts = num_hosts
    self._bits_per_second = bits_per_second
    self._delay = delay
    self._prefix = f'lg{os.getpid()}'
    self._created: list[str] = []

  def __enter__(self) -> EmulatedHosts:
    if os.geteuid() or not shutil.which('ip'):
      raise user_error.UserError(
        'hosts can be emulated by root only, with the command ip of iproute2; '
        'without --emulated_hosts processes share this one'
      )
    try:
      bridge = self._Create('bridge')
      _Ip('-n', bridge, 'link', 'add', 'br0', 'type', 'bridge')
      _Ip('-n', bridge, 'link', 'set', 'br0', 'up')
      for k in range(self._num_hosts):
        self._AddHost(k, bridge)
    except BaseException:
      self._Delete()
      raise
    return self

  def _Create(self, name: str) -> str:
    namespace = f'{self._prefix}{name}'
    _Ip('netns', 'add', namespace)
    self._created.append(namespace)
    return namespace

  def _AddHost(self, k: int, bridge: str) -> None:
    host = self._Create(f'h{k}')
    port = f'port{k}'
    _Ip(
      *('-n', bridge, 'link', 'add', port, 'type', 'veth'),
      *('peer', 'name', 'eth0', 'netns', host),
    )
    _Ip('-n', bridge, 'link', 'set', port, 'master', 'br0', 'up')
    _Ip('-n', host, 'addr', 'add', f'{self.Address(k)}/24', 'dev', 'eth0')
    _Ip('-n', host, 'link', 'set', 'lo', 'up')
    _Ip('-n', host, 'link', 'set', 'eth0', 'up')
    if self._bits_per_second or self._delay:
      for namespace, device in ((host, 'eth0'), (bridge, port)):
        self._Slow(namespace, device)

  def _Slow(self, namespace: str, device: str) -> None:
    """Limits what leaves a device."""
    parent = ['root']
    add = ['tc', '-n', namespace, 'qdisc', 'add', 'dev', device]
    if self._bits_per_second:
      bits = self._bits_per_second
      # A bucket of 2 ms, or two packets; a queue of half a second.
      burst = max(bits / 8 * 0.002, 2 * 1600)
      rate = ['rate', f'{bits:.0f}bit', 'burst', f'{burst:.0f}']
      _Run([*add, *parent, 'handle', '1:', 'tbf', *rate, 'latency', '500ms'])
      parent = ['parent', '1:1']
    if self._delay:
      delay = ['delay', f'{self._delay * 1e6:.0f}us', 'limit', '100000']
      _Run([*add, *parent, 'netem', *delay])

  def Address(self, k: int) -> str:
    """Of host k."""
    return f'{_NETWORK}.{k + 1}'

  def Command(self, k: int, command: Sequence[str]) -> list[str]:
    """A command that runs another one on host k."""
    return ['ip', 'netns', 'exec', f'{self._prefix}h{k}', *command]

  def Cut(self, k: int) -> None:
    """Host k loses all packets from and to others."""
    _Ip('-n', f'{self._prefix}bridge', 'link', 'set', f'port{k}', 'down')

  def Join(self, k: int) -> None:
    """The link that was cut works again."""
    _Ip('-n', f'{self._prefix}bridge', 'link', 'set', f'port{k}', 'up')

  def __exit__(self, *unused_exc: Any) -> None:
    self._Delete()

  def _Delete(self) -> None:
    # Links between namespaces go with them.
    for namespace in reversed(self._created):
      subprocess.run(['ip', 'netns', 'del', namespace], check=False)
    self._created.clear()


def _Ip(*args: str) -> None:
  _Run(['ip', *args])


def _Run(command: Sequence[str]) -> None:
  result = subprocess.run(command, capture_output=True, text=True, check=False)
  if result.returncode:
    raise user_error.UserError(
      f'hosts cannot be emulated here: {" ".join(command)}: '
      f'{result.stderr.strip()}'
    )
