"""Measures how many tokens a second a translation model trains on.

  python -m tools.benchmarks.translation_training \\
      --torch_python=/path/to/torch/bin/python

An encoder-decoder Transformer of tasks/mt beside PyTorch's nn.Transformer: from
the same weights, on the same mini-batch with padding, with Adam. Each partition
is a process on a core of its own with one thread, and so is PyTorch. All take a
step in turn; while one computes, the others take no processor time. Without
dropout the losses must agree, or the tool fails. Tokens are those of targets,
without padding.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags

from lingvo_gpipe import cluster, user_error
from lingvo_gpipe.workers import local_workers
from tools.benchmarks import (
  command,
  harness,
  peer_process,
  peer_setup,
  pipeline,
  report,
)
from tools.benchmarks.translation_training import model

# Of the losses of the first step, and of the last one: Adam divides by very
# small gradients, so that float32's last digits grow.
_FIRST_TOLERANCE = 1e-4
_LAST_TOLERANCE = 1e-2

_TORCH_PYTHON = flags.DEFINE_string(
  'torch_python',
  sys.executable,
  'Python interpreter that can import PyTorch (2.5 or newer) and NumPy.',
)
_LAYERS = flags.DEFINE_integer(
  'layers', 3, 'Of the encoder, and as many of the decoder.', lower_bound=1
)
_DIM = flags.DEFINE_integer(
  'dim', 256, 'Width of the stream, an even number.', lower_bound=2
)
_HIDDEN_DIM = flags.DEFINE_integer(
  'hidden_dim', 1024, 'Of feed-forward networks.', lower_bound=1
)
_HEADS = flags.DEFINE_integer('heads', 4, 'Of attention.', lower_bound=1)
_VOCAB_SIZE = flags.DEFINE_integer('vocab_size', 8000, 'Ids.', lower_bound=2)
_BATCH = flags.DEFINE_integer(
  'batch', 32, 'Pairs of a mini-batch.', lower_bound=1
)
_TIME = flags.DEFINE_integer(
  'time', 64, 'Places of a row, on each side.', lower_bound=2
)
_KEEP_PROB = flags.DEFINE_float(
  'keep_prob',
  1.0,
  'Of all dropouts. Below 1 the two draw different masks, and losses are not '
  'compared.',
  lower_bound=0.1,
  upper_bound=1.0,
)
_WORKERS = flags.DEFINE_integer(
  'workers', 2, 'K of the longest pipeline.', lower_bound=1
)
_MICRO_BATCHES = flags.DEFINE_integer(
  'micro_batches', 8, 'M of pipelines.', lower_bound=1
)
_ROUNDS = flags.DEFINE_integer('rounds', 9, 'Measured steps.', lower_bound=1)
_OUTPUT = flags.DEFINE_string(
  'output', '', 'File to write the results to as JSON. Empty: none.'
)

_COLUMNS = (
  report.Column('name', ''),
  report.Column('k', 'K'),
  report.Column('m', 'M'),
  report.Column('policy', 'recompute'),
  report.Column('seconds', 's/step', report.Seconds),
  report.Column('lower', '25%', report.Seconds),
  report.Column('upper', '75%', report.Seconds),
  report.Column('tokens_per_second', 'tokens/s', report.Count),
  report.Column('of_torch', 'of PyTorch', report.Ratio),
  report.Column('first_loss', 'first loss', lambda x: f'{x:.5f}'),
  report.Column('loss', 'last loss', lambda x: f'{x:.5f}'),
)


class Subject(NamedTuple):
  """A line of the table.

  Attributes:
    name: whose it is.
    k: partitions.
    m: micro-batches.
    policy: of re-materialization.
  """

  name: str
  k: int = 1
  m: int = 1
  policy: str = 'none'


_TORCH = 'PyTorch'


def OurSubjects(num_workers: int, num_micro_batches: int) -> list[Subject]:
  """What is measured of ours: the plain model, then pipelines."""
  name = 'lingvo_gpipe'
  pipelines = [
    Subject(name, k, num_micro_batches, policy)
    for k in range(1, num_workers + 1)
    for policy in ('none', 'partition')
  ]
  return list(dict.fromkeys([Subject(name), *pipelines]))


def Rows(
  first: Mapping[Subject, float],
  samples: Mapping[Subject, Sequence[harness.Sample]],
  tokens: int,
) -> list[dict[str, Any]]:
  """The lines of the table.

  Args:
    first: losses of the first step.
    samples: of harness.Alternate.
    tokens: of a step.

  Returns:
    A row for each; of_torch is how many times as many tokens a second as
    PyTorch, where it was measured.
  """
  rows = []
  for subject, taken in samples.items():
    summary = harness.Summarize([s.seconds for s in taken])
    rows.append(
      {
        **subject._asdict(),
        'seconds': summary.median,
        'lower': summary.lower,
        'upper': summary.upper,
        'tokens_per_second': tokens / summary.median,
        'first_loss': first[subject],
        'loss': taken[-1].result,
      }
    )
  torch = [r['seconds'] for r in rows if r['name'].startswith(_TORCH)]
  for row in rows:
    row['of_torch'] = torch[0] / row['seconds'] if torch else None
  return rows


def CheckLosses(rows: Sequence[Mapping[str, Any]]) -> None:
  """Raises unless all have trained the same model.

  Args:
    rows: of Rows.

  Raises:
    RuntimeError: for losses that differ.
  """
  for key, tolerance in (
    ('first_loss', _FIRST_TOLERANCE),
    ('loss', _LAST_TOLERANCE),
  ):
    losses = [row[key] for row in rows]
    if not max(losses) - min(losses) <= tolerance * abs(max(losses)):
      raise RuntimeError(f'losses differ ({key}): {losses}')


def _Sizes() -> model.Sizes:
  if _DIM.value % _HEADS.value or _DIM.value % 2:
    raise user_error.UserError(
      f'--dim={_DIM.value} must be even and a multiple of --heads='
      f'{_HEADS.value}'
    )
  if _BATCH.value % _MICRO_BATCHES.value:
    raise user_error.UserError(
      f'--batch={_BATCH.value} is not divisible into --micro_batches='
      f'{_MICRO_BATCHES.value}'
    )
  return model.Sizes(
    num_layers=_LAYERS.value,
    dim=_DIM.value,
    hidden_dim=_HIDDEN_DIM.value,
    num_heads=_HEADS.value,
    vocab_size=_VOCAB_SIZE.value,
    batch=_BATCH.value,
    time=_TIME.value,
    keep_prob=_KEEP_PROB.value,
  )


def _Steps(
  stack: contextlib.ExitStack, sizes: model.Sizes, batch: dict[str, Any]
) -> dict[Subject, Callable[[], float]]:
  """A step of each, all from the same weights."""
  workers = stack.enter_context(local_workers.LocalWorkers(_WORKERS.value))
  devices = list(cluster.Connect(workers.addresses).devices)
  models = {}
  for subject in OurSubjects(_WORKERS.value, _MICRO_BATCHES.value):
    models[subject] = model.Ours(
      sizes,
      batch,
      devices[: subject.k],
      num_micro_batches=subject.m,
      rematerialize=subject.policy,
    )
  origin, *others = models.values()
  for other in others:
    other.Assign(origin)
  steps = {subject: ours.Step for subject, ours in models.items()}
  python = _TORCH_PYTHON.value
  if not peer_process.CanImport(python, 'torch.nn'):
    report.Progress(f'{_TORCH}: {python} cannot import it; --torch_python')
    return steps
  torch = stack.enter_context(
    model.Torch(
      python,
      sizes,
      batch,
      origin.Weights(),
      folder=stack.enter_context(tempfile.TemporaryDirectory()),
      core=peer_setup.Cores(1)[0],
    )
  )
  torch.WaitUntilReady()
  name = f'{_TORCH} {torch.version}'
  return {Subject(name): functools.partial(torch.Step, 'step'), **steps}


def Main() -> int:
  """Measures and prints; returns the exit status."""
  sizes = _Sizes()
  batch = model.Batch(sizes)
  with (
    user_error.Expected(peer_process.PeerError),
    contextlib.ExitStack() as stack,
  ):
    steps = _Steps(stack, sizes, batch)
    first = {}
    for subject, step in steps.items():
      first[subject] = step()
      report.Progress(f'{subject}: loss {first[subject]:.5f}')
    samples = harness.Alternate(
      steps, rounds=_ROUNDS.value, warmups=2, progress=report.Progress
    )
    steps.clear()
    pipeline.FreeUnused()
  rows = Rows(first, samples, model.Tokens(batch))
  print(report.Table(_COLUMNS, rows))
  if _OUTPUT.value:
    report.WriteJson(_OUTPUT.value, rows, keep_prob=sizes.keep_prob)
  if sizes.keep_prob == 1.0:
    CheckLosses(rows)
  return 0


if __name__ == '__main__':
  command.Run(Main)
