"""Imports TensorFlow without its start-up notices, for programs."""

from __future__ import annotations

import os
import sys
import tempfile


def ImportTensorFlow(*, quiet: bool) -> None:
  """Imports TensorFlow.

  Some notices come before TF_CPP_MIN_LOG_LEVEL is heeded, so stderr is kept
  back during the import and only shown if that fails. Who sets the variable to
  0 or 1 sees them all.

  Args:
    quiet: also silences what it says on finding no GPU.
  """
  if os.environ.get('TF_CPP_MIN_LOG_LEVEL') in ('0', '1'):
    return
  os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3' if quiet else '2'
  sys.stderr.flush()
  stderr = os.dup(2)
  with tempfile.TemporaryFile() as kept_back:
    os.dup2(kept_back.fileno(), 2)
    try:
      import tensorflow  # noqa: F401
    except BaseException:
      kept_back.seek(0)
      os.write(stderr, kept_back.read())
      raise
    finally:
      os.dup2(stderr, 2)
      os.close(stderr)
