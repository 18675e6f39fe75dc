"""What processes that this one starts need to import the same modules.

Under Bazel, modules are found through sys.path only, which a new process does
not inherit. Pure Python.
"""

from __future__ import annotations

import os
import sys


def PythonPath() -> str:
  """PYTHONPATH with which a new process finds what this one finds."""
  return os.pathsep.join(filter(None, sys.path))


def Environment(**more: str) -> dict[str, str]:
  """The environment of this process, with that PYTHONPATH.

  Args:
    **more: further variables.

  Returns:
    A new dict.
  """
  return {**os.environ, 'PYTHONPATH': PythonPath(), **more}
