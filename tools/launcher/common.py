"""What the parts of the launcher share: messages, locks, logged commands."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

# Bazel's exit code for "local environmental issue".
EXIT_CODE = 36

_NETWORK_SIGNS = (
  'Temporary failure in name resolution',
  'Temporary failure resolving',
  'Could not resolve',
  'Name or service not known',
  'Failed to establish a new connection',
  'Network is unreachable',
  'Connection refused',
  'Connection timed out',
  'Could not connect to',
  'Cannot connect to proxy',
  'Max retries exceeded',
  'Read timed out',
)


class LauncherError(Exception):
  """Something the user has to mend; the message says what and how."""


def Say(message: str) -> None:
  print(f'bazelw: {message}', file=sys.stderr, flush=True)


def Plural(count: int, noun: str) -> str:
  return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


@contextlib.contextmanager
def Lock(path: pathlib.Path, what: str) -> Iterator[None]:
  """Holds an exclusive lock on `path`; says so when another launcher has it.

  Commands of RunLogged share it: if the launcher is killed, the lock lasts
  until what it started has ended too.

  Args:
    path: the lock file.
    what: what the holder does, "installing ...", for the message.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open('w') as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      Say(f'another launcher is {what}; waiting for it')
      fcntl.flock(file, fcntl.LOCK_EX)
    os.set_inheritable(file.fileno(), True)
    yield  # Closing the file releases it, and so does the death of the holders.


@dataclasses.dataclass(frozen=True)
class CommandResult:
  """How a logged command ended."""

  status: int
  output: str  # the last lines of stdout and stderr, as they were interleaved
  log: pathlib.Path

  def Reason(self) -> str | None:
    """The reason for a failure where the output names a common one."""
    if 'No space left on device' in self.output:
      return 'the disk is full. Free some space and run the command again'
    if any(sign in self.output for sign in _NETWORK_SIGNS):
      return (
        'the network cannot be reached. Check the connection (or the proxy '
        'and mirror settings) and run the command again'
      )
    return None

  def Tail(self, lines: int = 8) -> str:
    return '\n'.join(f'  {x}' for x in self.output.splitlines()[-lines:])


def RunLogged(
  command: Sequence[str],
  log: pathlib.Path,
  env: Mapping[str, str] | None = None,
  on_line: Callable[[str], None] = lambda line: None,
) -> CommandResult:
  """Runs a command with its output in a log file instead of on the terminal.

  Args:
    command: program and arguments.
    log: file that gets the command and its output (appended).
    env: the whole environment of the command; None passes ours on.
    on_line: called with each line of output, to report progress.

  Returns:
    Exit status and last output.
  """
  log.parent.mkdir(parents=True, exist_ok=True)
  # Enough to find the reason of a failure: pip's warnings about a missing
  # network come long before its last line.
  lines: collections.deque[str] = collections.deque(maxlen=500)
  with log.open('a') as file:
    file.write(f'\n$ {" ".join(command)}\n')
    with subprocess.Popen(
      command,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      env=None if env is None else dict(env),
      close_fds=False,  # See Lock.
      text=True,
      errors='replace',
    ) as process:
      assert process.stdout is not None
      try:
        for line in process.stdout:
          file.write(line)
          file.flush()
          lines.append(line)
          on_line(line.rstrip('\n'))
      except BaseException:  # Such as Ctrl-C: leave nothing running.
        process.terminate()
        raise
  return CommandResult(process.returncode, ''.join(lines), log)


def WriteAtomically(path: pathlib.Path, text: str) -> None:
  """Writes a file that other processes see either whole or not at all."""
  temporary = path.with_name(f'{path.name}.{os.getpid()}')
  temporary.write_text(text)
  temporary.replace(path)
