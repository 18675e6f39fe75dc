"""A trainer and its workers as processes that can be hurt.

On this host, where workers share the loopback interface, or on emulated hosts
of their own, whose links can be cut.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from lingvo_gpipe import child_process
from lingvo_gpipe.workers import free_ports
from tools.benchmarks import emulated_hosts

TRAINER = 'trainer'

# Longer than anything here takes on a loaded machine.
_MAX_SECONDS = 300.0


class Output:
  """The lines that a process prints, with the times when they came."""

  def __init__(self, process: subprocess.Popen, log: str):
    self._lines: list[tuple[float, str]] = []
    self._changed = threading.Condition()
    self._ended = False
    self._stream = process.stdout
    self._log = open(log, 'a', encoding='utf-8')  # noqa: SIM115
    threading.Thread(target=self._Read, daemon=True).start()

  def _Read(self) -> None:
    for line in self._stream:
      self._log.write(line)
      self._log.flush()
      with self._changed:
        self._lines.append((time.time(), line.rstrip('\n')))
        self._changed.notify_all()
    with self._changed:
      self._ended = True
      self._changed.notify_all()
    self._log.close()
    self._stream.close()

  @property
  def count(self) -> int:
    """Lines so far."""
    with self._changed:
      return len(self._lines)

  def Await(self, pattern: str, start: int = 0) -> tuple[float, re.Match, int]:
    """Waits for a line.

    Args:
      pattern: regular expression that the line begins with.
      start: number of the first line to look at.

    Returns:
      (when it came, the match, number of the line after it).

    Raises:
      RuntimeError: where the output ends, or nothing like it comes.
    """
    deadline = time.monotonic() + _MAX_SECONDS
    with self._changed:
      while True:
        for i in range(start, len(self._lines)):
          match = re.match(pattern, self._lines[i][1])
          if match:
            return self._lines[i][0], match, i + 1
        start = len(self._lines)
        if self._ended or time.monotonic() > deadline:
          last = '\n'.join(line for _, line in self._lines[-20:])
          raise RuntimeError(f'no line like {pattern!r} came:\n{last}')
        self._changed.wait(1.0)

  def Last(self, pattern: str) -> re.Match:
    """The match of the last line like `pattern`; waits for the first."""
    self.Await(pattern)
    with self._changed:
      matches = [re.match(pattern, line) for _, line in self._lines]
    return [match for match in matches if match][-1]


class Processes:
  """A context manager: workers run within it, and trainers one by one.

  Args:
    num_workers: K.
    directory: of the logs of all.
    hosts: emulated ones, the first of them for the trainer; None: this host.
    lost_seconds: of the trainer's flag.
  """

  def __init__(
    self,
    num_workers: int,
    directory: str,
    hosts: emulated_hosts.EmulatedHosts | None,
    lost_seconds: float,
  ):
    self._directory = directory
    self._hosts = hosts
    self._lost_seconds = lost_seconds
    ports = free_ports.FreePorts(num_workers)
    self._names = [
      f'{hosts.Address(k + 1) if hosts else "localhost"}:{port}'
      for k, port in enumerate(ports)
    ]
    self._workers: list[subprocess.Popen] = []
    self._outputs: list[Output] = []
    self._trainer: subprocess.Popen | None = None
    self.output: Output | None = None

  @property
  def addresses(self) -> list[str]:
    """Of the workers."""
    return list(self._names)

  def __enter__(self) -> Processes:
    listen = 'network' if self._hosts else 'local'
    for k in range(len(self._names)):
      worker = self._Start(
        k + 1,
        '--job=worker',
        f'--worker_task={k}',
        '--worker_threads=1',
        f'--worker_listen={listen}',
      )
      self._workers.append(worker)
      self._outputs.append(
        Output(worker, os.path.join(self._directory, f'worker_{k}.txt'))
      )
    return self

  def _Start(self, host: int, *args: str) -> subprocess.Popen:
    command = [
      *(sys.executable, '-P', '-m', 'lingvo_gpipe.trainer'),
      f'--worker_hosts={",".join(self._names)}',
      *args,
    ]
    if self._hosts:
      command = self._hosts.Command(host, command)
    env = child_process.Environment()
    return subprocess.Popen(
      command,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      env=env,
    )

  def StartTrainer(self, logdir: str, args: Sequence[str]) -> None:
    """Starts one; the one before has ended."""
    self._trainer = self._Start(
      0,
      f'--logdir={logdir}',
      f'--worker_lost_seconds={self._lost_seconds}',
      *args,
    )
    self.output = Output(
      self._trainer, os.path.join(self._directory, 'trainer.txt')
    )

  def Pid(self, victim: str | int) -> int:
    """The process to hurt: the trainer, or the server of a worker."""
    if victim == TRAINER:
      return self._trainer.pid
    return int(
      self._outputs[victim].Last(r'.* listens at .*, process (\d+)$')[1]
    )

  def Hurt(self, victim: str | int, kind: str) -> Callable[[], Any]:
    """Does it.

    Args:
      victim: TRAINER or the number of a worker.
      kind: 'kill', 'stop' or 'cut'.

    Returns:
      What makes good again what can be.
    """
    host = 0 if victim == TRAINER else victim + 1
    if kind == 'cut':
      self._hosts.Cut(host)
      return lambda: self._hosts.Join(host)
    pid = self.Pid(victim)
    if kind == 'stop':
      os.kill(pid, signal.SIGSTOP)
      return lambda: os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    if victim == TRAINER:
      self._trainer.wait()
    return lambda: None

  def EndTrainer(self, number: signal.Signals = signal.SIGTERM) -> int:
    """Ends the trainer by a signal; returns its exit status."""
    self._trainer.send_signal(number)
    return self._trainer.wait(_MAX_SECONDS)

  def __exit__(self, *unused_exc: Any) -> None:
    for process in (*self._workers, self._trainer):
      if process is not None and process.poll() is None:
        process.terminate()
        try:
          process.wait(20.0)
        except subprocess.TimeoutExpired:
          process.kill()
          process.wait()
