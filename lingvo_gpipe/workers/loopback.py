"""Keeps a process's servers from being reached by other machines.

TensorFlow's servers listen on all network addresses and cannot be told
otherwise, nor do they ask who connects. Linux can bind a socket that listens
already to the loopback interface; connections from elsewhere are then refused.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket

_LISTENING = '0A'
_TABLES = ('/proc/self/net/tcp', '/proc/self/net/tcp6')
_INTERFACE = b'lo\0'


def IsLoopback(host: str) -> bool:
  """Whether a host name or address means this machine itself.

  Args:
    host: as in 'host:port', '[::1]' with or without brackets.

  Returns:
    True for 'localhost' and loopback addresses. Other names are not looked up.
  """
  if host == 'localhost':
    return True
  with contextlib.suppress(ValueError):
    return ipaddress.ip_address(host.strip('[]')).is_loopback
  return False


def Restrict(port: int) -> bool:
  """Refuses connections from other machines to a port of this process.

  Args:
    port: that a socket of this process listens on.

  Returns:
    Whether that worked; it needs Linux 5.7 or later, or to be root.
  """
  inodes = _ListeningInodes(port)
  # A list, for a socket that is duplicated below would come up again.
  descriptors = [
    number for number in map(int, os.listdir('/proc/self/fd')) if number > 2
  ]
  found = False
  for number in descriptors:
    try:
      link = os.readlink(f'/proc/self/fd/{number}')
    except OSError:  # That of the listing itself.
      continue
    match = re.fullmatch(r'socket:\[(\d+)\]', link)
    if not match or match[1] not in inodes:
      continue
    try:
      with socket.socket(fileno=os.dup(number)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, _INTERFACE)
    except OSError:
      return False
    found = True
  return found


def _ListeningInodes(port: int) -> set[str]:
  """Of all sockets of the machine that listen on a port."""
  inodes = set()
  for path in _TABLES:
    with contextlib.suppress(OSError), open(path, encoding='ascii') as f:
      for line in f.readlines()[1:]:
        fields = line.split()
        local, state, inode = fields[1], fields[3], fields[9]
        if state == _LISTENING and int(local.rpartition(':')[2], 16) == port:
          inodes.add(inode)
  return inodes
