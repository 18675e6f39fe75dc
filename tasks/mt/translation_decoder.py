"""Decodes a dataset of translation: files of translations, and their scores."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_decoder, base_input, hyperparams, nested_map
from lingvo_gpipe.decoding import token_rules
from lingvo_gpipe.export import serving_signature
from lingvo_gpipe.gpipe import stage as stage_lib
from tasks.mt import (
  scores,
  translation_file,
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
    input_generator: base_input.BaseInput,
  ):
    super().__init__(params, net, input_generator)
    translator.Check(net.cells, self.params)

  @functools.cached_property
  def _translator(self) -> translator.Translator:
    return self._OfStages(self.net.Stages())

  def _OfStages(
    self, stages: Sequence[stage_lib.Stage]
  ) -> translator.Translator:
    rules = Rules(self.input.vocab)
    return translator.Translator(stages, self.params, rules)

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

  def ServingSignatures(self) -> dict[str, serving_signature.ServingSignature]:
    """serving_default, from ids of sources to ids of translations.

    Sources, `ids`, begin with the tag of a language and end with eos, padding
    is 0; assets/vocab.model makes them from text. `scores` are those of
    beam_search.Search.
    """

    def _ToBatch(ids):
      return {'inputs': ids, 'source_paddings': tf.cast(ids == 0, tf.float32)}

    def _Compute(stages, theta, batch):
      return self._OfStages(stages).Translate(theta, batch)

    def _FromOutputs(found):
      return {'ids': found.ids[:, 0], 'scores': found.scores[:, 0]}

    return {
      'serving_default': serving_signature.ServingSignature(
        tf.TensorSpec([None, None], tf.int32, 'ids'),
        _ToBatch,
        _FromOutputs,
        _Compute,
      )
    }

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
