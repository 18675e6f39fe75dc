"""Vocabularies of subwords with tags of languages, from SentencePiece models.

  0 pad  1 unk  2 bos  3 eos  4... tags <2de>  then bytes  then subwords

The tag of the language to translate into stands first in a source sequence.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

import sentencepiece

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.mt import text_escape

PAD, UNK, BOS, EOS = range(4)
FIRST_TAG = 4
_SPECIAL = {'pad': PAD, 'unk': UNK, 'bos': BOS, 'eos': EOS}


def Tag(language: str) -> str:
  """The piece that asks for a language."""
  return f'<2{language}>'


class Vocabulary:
  """Encodes and decodes text.

  Any text is decoded as it was encoded; `<2de>` in a text is text.

  Args:
    model: the content of a model file.
    name: of the file, for messages.

  Attributes:
    model: as given.
    size: number of ids.
    tags: {language: id of its tag}.

  Raises:
    UserError: for what is no such model.
  """

  def __init__(self, model: bytes, name: str = 'the vocabulary'):
    self.model = model
    self._name = name
    with user_error.Expected(
      RuntimeError, prefix=f'{name} is no model of SentencePiece: '
    ):
      self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    self.size: int = self._processor.vocab_size()
    self.tags = self._FindTags()
    self._Check()
    self._escape = text_escape.TextEscape(map(Tag, self.tags))

  @classmethod
  def Read(cls, path: str) -> Vocabulary:
    """Reads a model file; UserError where it cannot be read or is none."""
    with user_error.Expected(OSError):
      with open(path, 'rb') as f:
        return cls(f.read(), path)

  @functools.cached_property
  def sha256(self) -> str:
    """Of the model, hexadecimal."""
    return hashlib.sha256(self.model).hexdigest()

  def TagId(self, language: str) -> int:
    """The id that asks for a language; UserError if there is none."""
    if language not in self.tags:
      raise user_error.UserError(
        f'{self._name} has no language {language!r}'
        + spelling.Hint(language, self.tags, 'languages')
      )
    return self.tags[language]

  def Encode(self, text: str) -> list[int]:
    """The ids of a text, without tag and eos."""
    return self.EncodeAll([text])[0]

  def EncodeAll(self, texts: Iterable[str]) -> list[list[int]]:
    """The ids of some texts; quicker than one by one."""
    return self._processor.encode([self._escape.Escape(x) for x in texts])

  def Decode(self, ids: Sequence[int]) -> str:
    """The text of some ids; pad, bos, eos and tags say nothing."""
    first_piece = FIRST_TAG + len(self.tags)
    pieces = [int(i) for i in ids if i == UNK or i >= first_piece]
    return self._escape.Restore(self._processor.decode(pieces))

  def SourceIds(self, pieces: Sequence[int], language: str) -> list[int]:
    """What an encoder reads: the tag of the wanted language, pieces, eos."""
    return [self.TagId(language), *pieces, EOS]

  def TargetIds(self, pieces: Sequence[int]) -> list[int]:
    """What a decoder is to write: pieces, eos."""
    return [*pieces, EOS]

  def _FindTags(self) -> dict[str, int]:
    tags = {}
    for i in range(FIRST_TAG, self.size):
      piece = self._processor.id_to_piece(i)
      if not (piece.startswith('<2') and piece.endswith('>')):
        break
      tags[piece[2:-1]] = i
    return tags

  def _Check(self) -> None:
    """Raises UserError for models that were not made for this."""
    processor = self._processor
    ids = {x: getattr(processor, f'{x}_id')() for x in _SPECIAL}
    has_bytes = processor.is_byte(processor.piece_to_id('<0x41>'))
    if ids != _SPECIAL or not self.tags or not has_bytes:
      raise user_error.UserError(
        f'{self._name} is a model of SentencePiece, but not one for '
        'translation here, which has pad, unk, bos and eos as 0 to 3, then '
        'tags such as <2de>, then bytes; make one by python -m tools.mt.prepare'
      )
