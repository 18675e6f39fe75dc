"""Decodes a dataset of translation: files of translations, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lingvo_gpipe import base_decoder, hyperparams, nested_map
from lingvo_gpipe.decoding import token_rules
from tasks.mt import (
  scores,
  translation_file,
  translation_input,
  translator,
  vocabulary,
)

NestedMap = nested_map.NestedMap


class TranslationDecoder(base_decoder.BaseDecoder):
  """Beam search over the sentences of a TranslationInput."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    translator.DefineParams(p)
    return p

  def __init__(
    self,
    params: hyperparams.InstantiableParams,
    net: Any,
    input_generator: translation_input.TranslationInput,
  ):
    super().__init__(params, net, input_generator)
    self._translator = translator.Translator(
      net.Stages(), self.params, Rules(input_generator.vocab)
    )

  def Decode(self, theta: NestedMap, batch: NestedMap) -> NestedMap:
    """The best translation of each sentence.

    Args:
      theta: values of the network's variables.
      batch: of the input.

    Returns:
      NestedMap of
        ids: int32 [batch, longest], padded with 0;
        score: [batch], see beam_search.Search.
    """
    found = self._translator.Translate(theta, batch)
    return NestedMap(ids=found.ids[:, 0], score=found.scores[:, 0])

  def Rows(
    self, batch: Mapping[str, Any], outputs: Mapping[str, Any]
  ) -> list[translation_file.Translation]:
    """Source, reference and translation of each sentence, as text."""
    return [
      self.input.Sentence(int(example)).Translated(
        self.input.vocab.Decode(ids), float(score)
      )
      for example, ids, score in zip(
        batch['example_ids'], outputs['ids'], outputs['score'], strict=True
      )
    ]

  def Write(
    self, path: str, rows: Sequence[translation_file.Translation]
  ) -> None:
    """Writes a file of translations; see translation_file.py."""
    translation_file.Write(path, rows)

  def Scores(
    self, rows: Sequence[translation_file.Translation]
  ) -> dict[str, float]:
    """chrF and BLEU, the means over the languages."""
    return scores.Summary(rows)


def Rules(vocab: vocabulary.Vocabulary) -> token_rules.TokenRules:
  """What a translation may consist of: pieces, and its end.

  Args:
    vocab: of the model.

  Returns:
    The rules.
  """
  return token_rules.TokenRules(
    vocab_size=vocab.size,
    first_id=vocabulary.BOS,
    end_id=vocabulary.EOS,
    # With bytes as pieces there is nothing unknown to write.
    forbidden=(
      vocabulary.PAD,
      vocabulary.UNK,
      vocabulary.BOS,
      *vocab.tags.values(),
    ),
  )
