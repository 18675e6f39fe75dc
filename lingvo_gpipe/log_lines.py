"""The lines that programs show, as text or as JSON for collectors of logs.

  text  step 20/600 loss 0.3412 lr 0.05 ETA 1m02s
  json  {"time": "2026-01-31T12:00:00.250+00:00", "severity": "INFO",
         "message": "step 20/600 loss 0.3412 lr 0.05 ETA 1m02s", "step": 20,
         "max_steps": 600, "loss": 0.34118, ...}          (all on one line)

Who shows a line needs not know which of the two is set. Where a line tells
numbers it may be a `Line`, which is its text for everybody else.

Pure Python.
"""

from __future__ import annotations

import datetime
import json
import logging
import math
import sys
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

FORMATS = ('text', 'json')
_PREFIXES = {
  'warning: ': 'WARNING',
  'no step has ended ': 'WARNING',  # See watchdog.py.
  'lost: ': 'WARNING',  # A worker.
  'error: ': 'ERROR',
  'out of memory: ': 'ERROR',  # Of a worker.
}

_format = 'text'


def SetFormat(name: str) -> None:
  """Sets how lines of this process are shown from now on, one of FORMATS."""
  global _format
  _format = name


def IsJson() -> bool:
  """Whether lines are shown as JSON."""
  return _format == 'json'


class Line(str):
  """A text with the values that it tells.

  Attributes:
    values: {name: number or text}.
  """

  values: Mapping[str, Any]

  def __new__(cls, text: str, values: Mapping[str, Any]) -> Line:
    line = super().__new__(cls, text)
    line.values = values
    return line


def Show(line: str, stream: TextIO | None = None) -> None:
  """Prints a line at once, also into a file or pipe.

  Args:
    line: may have several lines of text, which are one of JSON. Its severity is
      seen by how it begins, such as `warning:` or `error:`.
    stream: None: standard output.
  """
  if IsJson():
    if not line.strip():  # It only sets text apart.
      return
    severity = next(
      (s for prefix, s in _PREFIXES.items() if line.startswith(prefix)), 'INFO'
    )
    line = _Json(line, severity, getattr(line, 'values', {}))
  # In one piece: threads show lines, too.
  print(f'{line}\n', end='', file=stream, flush=True)


def ShowFault(fault: BaseException) -> None:
  """Shows an exception that is nobody's mistake, with its traceback."""
  text = ''.join(traceback.format_exception(fault)).rstrip()
  if IsJson():
    text = _Json(text, 'ERROR', {})
  print(f'{text}\n', end='', file=sys.stderr, flush=True)


class JsonFormatter(logging.Formatter):
  """Makes the same lines of what goes through Python's logging."""

  def format(self, record: logging.LogRecord) -> str:
    """The line of a record, with the traceback if it has one."""
    severity = record.levelname
    return _Json(super().format(record), severity, {})


def _Json(message: str, severity: str, values: Mapping[str, Any]) -> str:
  now = datetime.datetime.now(datetime.UTC)
  fields = {
    'time': now.isoformat(timespec='milliseconds'),
    'severity': severity,
    'message': message,
  }
  # A metric may have any name, but not the one of another field.
  fields.update({k: _Plain(v) for k, v in values.items() if k not in fields})
  return json.dumps(fields, allow_nan=False)


def _Plain(value: Any) -> Any:
  """None for numbers that JSON has not."""
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value
