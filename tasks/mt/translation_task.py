"""A translation model as a task: network, decoder."""

from __future__ import annotations

from lingvo_gpipe import base_task, hyperparams
from tasks.mt import transformer as transformer_lib
from tasks.mt import translation_decoder


def Params(
  transformer: transformer_lib.Transformer,
  *,
  num_partitions: int,
  num_micro_batches: int,
) -> hyperparams.InstantiableParams:
  """The params of a task that is trained on pairs of sentences.

  Args:
    transformer: what the network is.
    num_partitions: K.
    num_micro_batches: M.

  Returns:
    Params, with network and decoder; learner and lengths are those of any
    task.
  """
  p = base_task.BaseTask.Params().Set(name='mt', loss_unit='tokens')
  p.net.Set(
    cells=transformer.Cells(),
    num_partitions=num_partitions,
    num_micro_batches=num_micro_batches,
  )
  p.decoder = translation_decoder.TranslationDecoder.Params()
  return p
