"""Translation models to translate text with, from a run or a SavedModel."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from lingvo_gpipe import cluster, nested_map, user_error
from lingvo_gpipe.jobs import flags as job_flags
from lingvo_gpipe.jobs import logdir as logdir_lib
from lingvo_gpipe.jobs import model_loader, run_assets
from lingvo_gpipe.train import (
  average_checkpoints,
  best_checkpoint,
  checkpoint_files,
)
from tasks.mt import translation_decoder, translator, vocabulary

# Among the assets of a run, and of a SavedModel.
_VOCAB_FILE = 'vocab.model'


class TranslationModel(NamedTuple):
  """A model that is ready.

  Attributes:
    vocab: its vocabulary.
    translate: from (ids, paddings) of sources to ids of translations, see
      TextTranslator.
  """

  vocab: vocabulary.Vocabulary
  translate: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Search:
  """Which checkpoints, and how translations are found.

  Attributes:
    checkpoint: the prefix of the only one; '': of the run's.
    average_checkpoints: of so many newest ones the mean is taken.
    beam_size: 0 leaves it to the model.
    length_penalty: None leaves it to the model.
  """

  checkpoint: str = ''
  average_checkpoints: int = 1
  beam_size: int = 0
  length_penalty: float | None = None


def FromSavedModel(path: str) -> TranslationModel:
  """What tools/export has written.

  Args:
    path: of the directory.

  Returns:
    The model.

  Raises:
    UserError: where it cannot be read.
  """
  with user_error.Expected(
    OSError, tf.errors.OpError, prefix=f'--saved_model={path}: '
  ):
    module = tf.saved_model.load(path)
  vocab = vocabulary.Vocabulary.Read(os.path.join(path, 'assets', _VOCAB_FILE))
  function = module.signatures['serving_default']
  return TranslationModel(
    vocab, lambda inputs, unused: function(ids=inputs)['ids']
  )


def FromRun(options: job_flags.Options, search: Search) -> TranslationModel:
  """A model with the weights of a run, on as many devices as it has partitions.

  Args:
    options: the model, its changes, and the log directory.
    search: see there.

  Returns:
    The model.

  Raises:
    UserError: for what the person who typed the command can mend.
  """
  logdir = logdir_lib.LogDir(options.logdir)
  vocab = vocabulary.Vocabulary(
    run_assets.Read(logdir, _VOCAB_FILE), logdir.AssetPath(_VOCAB_FILE)
  )
  prefixes = _Prefixes(logdir.train_dir, search)
  model = model_loader.Load(options)
  settings = model.params.decoder
  if settings is None:
    raise user_error.UserError(
      f'model {model.name} has nothing to decode: its task has no param '
      '"decoder"'
    )
  if search.beam_size:
    settings.beam_size = search.beam_size
  if search.length_penalty is not None:
    settings.length_penalty = search.length_penalty
  model.params.net.num_replicas = 1
  spec = model.Instantiate(model.params.input).BatchSpec()
  task = model.Instantiate()
  with user_error.Expected(ValueError):
    task.Plan(spec, cluster.Local('cpu', model.num_partitions).devices)
  task.net.InstantiateVariables()
  with user_error.Expected(checkpoint_files.CheckpointError):
    average_checkpoints.Restore(
      prefixes,
      dict(zip(task.EvalNames(), tf.nest.flatten(task.net.vars), strict=True)),
    )
  with user_error.Expected(ValueError):
    its = translator.Translator(
      task.net.Stages(), settings, translation_decoder.Rules(vocab)
    )

  @tf.function(autograph=False)
  def _Function(inputs, paddings):
    batch = nested_map.NestedMap(inputs=inputs, source_paddings=paddings)
    return its.Translate(task.net.theta, batch).ids[:, 0]

  return TranslationModel(vocab, _Function)


def _Prefixes(train_dir: str, search: Search) -> list[str]:
  """The checkpoints whose mean is taken."""
  if search.checkpoint:
    return [checkpoint_files.PrefixOf(search.checkpoint)]
  there = checkpoint_files.Checkpoints(train_dir)
  if len(there) < search.average_checkpoints:
    raise user_error.UserError(
      f'{train_dir} holds {len(there)} checkpoints, fewer than '
      f'{search.average_checkpoints} (--average_checkpoints); train first, or '
      'keep more (--saver_max_to_keep)'
    )
  best = best_checkpoint.Prefix(train_dir)
  if search.average_checkpoints == 1 and best in there:
    return [best]
  return there[-search.average_checkpoints :]
