"""Learns a vocabulary of subwords with SentencePiece."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

import sentencepiece

from lingvo_gpipe import user_error
from tasks.mt import text_escape, vocabulary

# Sums differ with the number of threads, so it is the same everywhere.
_THREADS = 4

# What SentencePiece says of sizes, and what we say.
_TOO_HIGH = re.compile(r'Vocabulary size too high .* value <= (\d+)')
_TOO_LOW = re.compile(r'smaller than required_chars\. \d+ vs (\d+)')


def Train(
  texts: Iterable[str],
  languages: Sequence[str],
  *,
  vocab_size: int,
  character_coverage: float = 0.9995,
) -> vocabulary.Vocabulary:
  """Learns a vocabulary.

  Nothing is normalised, and what has no piece is spelled in bytes: any text can
  be written, and comes back as it was.

  Args:
    texts: to learn from, in the wanted shares.
    languages: that get a tag each.
    vocab_size: number of ids, all together.
    character_coverage: share of the characters in `texts` that get pieces; the
      rarest ones are spelled in bytes.

  Returns:
    The Vocabulary; equal for equal arguments.

  Raises:
    UserError: for a vocab_size that is too large or too small for the texts.
  """
  tags = [vocabulary.Tag(x) for x in languages]
  escape = text_escape.TextEscape(tags).Escape
  model = io.BytesIO()
  try:
    sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=map(escape, texts),
      model_writer=model,
      model_type='unigram',
      vocab_size=vocab_size,
      character_coverage=character_coverage,
      byte_fallback=True,
      user_defined_symbols=tags,
      pad_id=vocabulary.PAD,
      unk_id=vocabulary.UNK,
      bos_id=vocabulary.BOS,
      eos_id=vocabulary.EOS,
      normalization_rule_name='identity',
      remove_extra_whitespaces=False,
      num_threads=_THREADS,
      minloglevel=2,
    )
  except RuntimeError as e:
    raise user_error.UserError(_SizeText(vocab_size, str(e))) from e
  return vocabulary.Vocabulary(model.getvalue())


def _SizeText(vocab_size: int, problem: str) -> str:
  flag = f'--vocab_size={vocab_size}'
  if found := _TOO_HIGH.search(problem):
    return f'{flag} is more than this text yields: use {found[1]} or less'
  if found := _TOO_LOW.search(problem):
    return (
      f'{flag} is too small for the special ids, tags, bytes and characters '
      f'of this text; use {found[1]} or more, or a smaller --character_coverage'
    )
  return f'{flag}: SentencePiece could not learn a vocabulary: {problem}'
