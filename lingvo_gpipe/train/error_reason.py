"""What an error of reading or writing says, in a line."""

from __future__ import annotations

import re

# A line of an error of TensorFlow that says nothing about its reason.
_TENSORFLOW_LINE_RE = re.compile(
  r'Graph execution error:|Detected at node |\d+ root error|\s+File "|\s*\[\['
)


def Reason(error: BaseException) -> str:
  """The message of an error as a line, less what TensorFlow adds of its own.

  That is names of operations, the places in the code that made them, and where
  a worker's message came from.
  """
  text = re.split(r'\n(?:Additional GRPC error| *\(1\) )', str(error))[0]
  text = re.sub(r'\{\{[^}]*\}\} |,? ?\[Op:\w+\]( name: *)?', '', text)
  text = re.sub(r'\n *\(0\) [A-Z_]+: ', '\n', text)
  lines = [x for x in text.splitlines() if not _TENSORFLOW_LINE_RE.match(x)]
  return ' '.join(' '.join(lines).split())
