"""Cleans pairs of texts, and drops those that would teach something wrong."""

from __future__ import annotations

import collections
import math
import statistics
import unicodedata
from collections.abc import Iterable

from tasks.mt import accelerators, parallel_text, placeholders

# Reasons, as reports show them.
EMPTY = 'empty'
CONTROL = 'control characters'
UNTRANSLATED = 'untranslated'
PLACEHOLDERS = 'other placeholders'
DUPLICATE = 'duplicate'
LENGTH = 'length out of proportion'

# Added to both lengths: a word more counts much in a short text.
_LENGTH_OFFSET = 10
# Categories of characters that are no text, and the mark of broken encoding.
_NO_TEXT = ('Cc', 'Cs')
_REPLACEMENT = '\ufffd'


def Clean(
  pairs: Iterable[parallel_text.Pair],
  *,
  is_user_interface: bool = False,
  max_length_ratio: float = 2.0,
) -> tuple[list[parallel_text.Pair], collections.Counter[str]]:
  """Cleans pairs.

  Texts become NFC, and white space a single blank. HTML is left as it is.
  Dropped are: texts that are empty, or hold control characters; pairs that are
  equal on both sides, whose placeholders differ, or that were there before in
  the same language; and pairs whose ratio of lengths is far from what is usual
  in the language.

  Args:
    pairs: as read.
    is_user_interface: whether accelerators (E&xit) have to be removed.
    max_length_ratio: how many times the ratio of lengths may be more, or less,
      than the median of the language.

  Returns:
    (pairs in their order, {reason: number of pairs dropped for it}).
  """
  dropped = collections.Counter()
  kept = []
  seen = set()
  for pair in pairs:
    cleaned, reason = _CleanPair(pair, is_user_interface)
    key = cleaned[:3]
    if not reason and key in seen:
      reason = DUPLICATE
    if reason:
      dropped[reason] += 1
    else:
      seen.add(key)
      kept.append(cleaned)
  inside = _InProportion(kept, math.log(max_length_ratio))
  if len(inside) < len(kept):
    dropped[LENGTH] = len(kept) - len(inside)
  return inside, dropped


def Text(text: str) -> str:
  """A text as all texts are here: NFC, single blanks for white space."""
  return ' '.join(unicodedata.normalize('NFC', text).split())


def _CleanPair(
  pair: parallel_text.Pair, is_user_interface: bool
) -> tuple[parallel_text.Pair, str]:
  """(cleaned, reason to drop it or '')."""
  source, target = Text(pair.source), Text(pair.target)
  if is_user_interface:
    source, target = map(str.strip, accelerators.Remove(source, target))
  pair = pair._replace(source=source, target=target)
  if not source or not target:
    return pair, EMPTY
  if _HasNoText(source) or _HasNoText(target):
    return pair, CONTROL
  if source == target:
    return pair, UNTRANSLATED
  if placeholders.Counts(source) != placeholders.Counts(target):
    return pair, PLACEHOLDERS
  return pair, ''


def _HasNoText(text: str) -> bool:
  # The test of the whole text is quick, and false for nearly all.
  return (not text.isprintable() or _REPLACEMENT in text) and any(
    c == _REPLACEMENT or unicodedata.category(c) in _NO_TEXT for c in text
  )


def _InProportion(
  pairs: list[parallel_text.Pair], max_deviation: float
) -> list[parallel_text.Pair]:
  ratios = [
    math.log(
      (len(x.target) + _LENGTH_OFFSET) / (len(x.source) + _LENGTH_OFFSET)
    )
    for x in pairs
  ]
  by_language = collections.defaultdict(list)
  for pair, ratio in zip(pairs, ratios, strict=True):
    by_language[pair.language].append(ratio)
  medians = {x: statistics.median(y) for x, y in by_language.items()}
  return [
    pair
    for pair, ratio in zip(pairs, ratios, strict=True)
    if abs(ratio - medians[pair.language]) <= max_deviation
  ]
