"""Translates lines of text, whatever computes the translations of batches."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from lingvo_gpipe import nested_map, user_error
from tasks.mt import translation_file, vocabulary

NestedMap = nested_map.NestedMap

# Lengths of batches are multiples of this, since each one is another graph.
_LENGTH_STEP = 16
# Lines that are sorted by length together.
_WINDOW = 4096


class TextTranslator:
  """Translates lines.

  Args:
    vocab: of the model.
    translate: from (inputs, source_paddings), int32 and float32 [batch_size,
      length], to the ids of translations, [batch_size, longest].
    batch_size: lines at once; fewer are filled up.
    max_tokens: longer lines are an error.
  """

  def __init__(
    self,
    vocab: vocabulary.Vocabulary,
    translate: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    *,
    batch_size: int = 32,
    max_tokens: int = 512,
  ):
    self._vocab = vocab
    self._translate = translate
    self._batch_size = batch_size
    self._max_tokens = max_tokens

  def Lines(self, lines: Iterator[str], language: str) -> Iterator[str]:
    """Translates lines, some thousands at once.

    Args:
      lines: of text without its ends of line; an empty one stays empty.
      language: to translate into.

    Yields:
      The translation of each, in order.

    Raises:
      UserError: for a language that the model does not know, and a line that is
        too long.
    """
    self._vocab.TagId(language)
    number = 0
    while True:
      window = list(itertools.islice(lines, _WINDOW))
      if not window:
        return
      yield from self._Window(window, language, number)
      number += len(window)

  def Sentences(
    self, rows: Sequence[translation_file.Translation]
  ) -> list[translation_file.Translation]:
    """Translates sentences into several languages.

    Args:
      rows: their sources, and target languages.

    Returns:
      The same with translations and without scores, in order.

    Raises:
      UserError: as of Lines.
    """
    translated = list(rows)
    for language in sorted({row.target_language for row in rows}):
      own = [i for i, x in enumerate(rows) if x.target_language == language]
      lines = self.Lines(iter([rows[i].source for i in own]), language)
      for i, line in zip(own, lines, strict=True):
        translated[i] = dataclasses.replace(
          rows[i], translation=line, score=None
        )
    return translated

  def _Window(
    self, lines: Sequence[str], language: str, before: int
  ) -> list[str]:
    sources = [
      self._vocab.SourceIds(pieces, language)
      for pieces in self._vocab.EncodeAll(lines)
    ]
    for i, source in enumerate(sources):
      if len(source) > self._max_tokens:
        raise user_error.UserError(
          f'line {before + i + 1} has {len(source)} tokens, more than '
          f'--max_tokens={self._max_tokens}; a line is to hold a sentence: '
          'split it, or raise the limit'
        )
    translations = [''] * len(lines)
    order = [i for i, line in enumerate(lines) if line.strip()]
    order.sort(key=lambda i: len(sources[i]))
    for start in range(0, len(order), self._batch_size):
      batch = order[start : start + self._batch_size]
      ids = self._Batch([sources[i] for i in batch])
      for i, row in zip(batch, ids, strict=False):
        translations[i] = self._vocab.Decode(row)
    return translations

  def _Batch(self, sources: Sequence[Sequence[int]]) -> np.ndarray:
    length = -(-max(map(len, sources)) // _LENGTH_STEP) * _LENGTH_STEP
    inputs = np.zeros([self._batch_size, length], np.int32)
    paddings = np.ones([self._batch_size, length], np.float32)
    for i, source in enumerate(sources):
      inputs[i, : len(source)] = source
      paddings[i, : len(source)] = 0.0
    return self._translate(tf.constant(inputs), tf.constant(paddings)).numpy()
