"""The files of prepared data; see record_files.py for what they hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from lingvo_gpipe import user_error
from tasks.mt import record_files, vocabulary


def ReadIndex(path: str, other_format: Callable[[Any], str]) -> dict[str, Any]:
  """Reads the index.

  Args:
    path: of the file, which is there.
    other_format: from the format that it has to what is to be said of that.

  Returns:
    What it holds.

  Raises:
    UserError: where it cannot be read, or is of another format.
  """
  with (
    user_error.Expected(OSError, ValueError, prefix=f'{path}: '),
    open(path, encoding='utf-8') as f,
  ):
    index = json.load(f)
  found = index.get('format') if isinstance(index, dict) else None
  if found != record_files.FORMAT:
    raise user_error.UserError(other_format(found))
  return index


def ReadVocabulary(
  folder: str, index: Mapping[str, Any]
) -> vocabulary.Vocabulary:
  """Reads the vocabulary.

  Args:
    folder: of the data.
    index: of it.

  Returns:
    The vocabulary.

  Raises:
    UserError: where it cannot be read, or is not the one of the records.
  """
  path = os.path.join(folder, index['vocab'])
  vocab = vocabulary.Vocabulary.Read(path)
  if vocab.sha256 != index['vocab_sha256']:
    raise user_error.UserError(
      f'{path} is not the vocabulary that the records were written with; '
      'copy the whole folder again, or prepare the data anew'
    )
  return vocab


def ReadText(path: str) -> list[list[str]]:
  """Reads the lines of raw text.

  Args:
    path: of a file that record_files.WriteText wrote.

  Returns:
    The columns of each line; two, if the file is whole.

  Raises:
    UserError: where it cannot be read.
  """
  with (
    user_error.Expected(OSError, UnicodeDecodeError, prefix=f'{path}: '),
    open(path, encoding='utf-8', newline='\n') as f,
  ):
    return [line.rstrip('\n').split('\t') for line in f]
