r"""Starting from the weights of another run, variable by variable.

  p.train.init_from.Set(
      checkpoint='/runs/imagenet',
      rules=[(r'pets/(.*)', r'image/\1')],   # our path -> the path there
      exclude=[r'head/.*'],                  # start at random
  )

Patterns are regular expressions for a whole path of one of our variables, or
for the end of one that begins after a '/': 'head/.*' fits 'pets/net/head/w',
but not 'pets/net/old_head/w'.

Only weights and moving moments are taken, no optimizer's slots. Reading runs no
code from the files; see checkpoint_files.py.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams, weights
from lingvo_gpipe.train import checkpoint_files, checkpoint_integrity

_MAX_LISTED = 20
_PARAM = 'train.init_from'


class InitError(checkpoint_files.CheckpointError):
  """A run cannot start from this checkpoint with these rules."""


class InitFromCheckpoint:
  """Which variable starts from which one of a checkpoint."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define(
      'checkpoint',
      '',
      'Prefix of a checkpoint, or a log directory or its folder train, whose '
      'newest one is taken (--init_checkpoint). Empty: variables start at '
      'random.',
    )
    p.Define(
      'rules',
      [],
      'List of (pattern of the path of our variable, its replacement: the path '
      'in the checkpoint). The first that fits counts; where none does, the '
      'path is the same.',
    )
    p.Define(
      'exclude',
      [],
      'List of patterns of our variables that start at random, such as '
      '"head/.*".',
    )
    p.Define(
      'use_ema',
      True,
      'Whether averages of weights are taken where the checkpoint has them.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    self.params = p = params.Copy()
    p.Freeze()
    self._rules = [_Rule(rule) for rule in p.rules]
    self._exclude = [_Pattern(x, 'exclude') for x in p.exclude]

  def Plan(self, variable_specs: Any) -> InitPlan:
    """Finds the value of each variable, reading none.

    Args:
      variable_specs: tree of VariableSpec, or one: all weights of the model.

    Returns:
      The plan.

    Raises:
      InitError: for variables that are not in the checkpoint or have other
        shapes there, all of them in one message.
      CheckpointError: where there is no checkpoint, or a damaged one.
    """
    p = self.params
    prefix = _Find(p.checkpoint)
    info = checkpoint_integrity.ReadInfo(prefix)
    checkpoint_integrity.CheckContents(prefix)
    theirs = checkpoint_integrity.ReadVariables(prefix)
    specs = {spec.path: spec for spec in tf.nest.flatten(variable_specs)}
    sources, random, missing, different = {}, [], {}, []
    for path, spec in specs.items():
      if any(_Fit(pattern, path) for pattern in self._exclude):
        random.append(path)
        continue
      source = self._Source(path)
      if p.use_ema and f'{source}/ema' in theirs:
        source = f'{source}/ema'
      if source not in theirs:
        missing[path] = source
      elif not _IsCompatible(spec, *theirs[source]):
        different.append(
          f'{path} ({_Show(spec.shape, spec.dtype)} here, '
          f'{_Show(*theirs[source])} there)'
        )
      else:
        sources[path] = source
    if missing or different:
      raise InitError(_Problem(prefix, missing, different, theirs))
    return InitPlan(
      prefix,
      model=info['model'],
      step=info['global_step'],
      sources=sources,
      random=tuple(random),
      idle=tuple(self._IdlePatterns(specs)),
    )

  def _IdlePatterns(self, paths: Iterable[str]) -> list[str]:
    """Patterns that fit no variable, perhaps because of a slip."""
    patterns = [pattern for pattern, unused in self._rules] + self._exclude
    return [
      pattern.pattern
      for pattern in patterns
      if not any(_Fit(pattern, path) for path in paths)
    ]

  def _Source(self, path: str) -> str:
    """The path in the checkpoint."""
    for pattern, replacement in self._rules:
      match = _Fit(pattern, path)
      if match:
        return path[: match.start()] + _Expand(match, replacement)
    return path


@dataclasses.dataclass(frozen=True)
class InitPlan:
  """Where the first values of a run come from.

  Attributes:
    prefix: of the checkpoint.
    model: its name, as the checkpoint says.
    step: of the checkpoint.
    sources: {path of our variable: path in the checkpoint}.
    random: paths of the variables that keep their random values.
    idle: patterns that fit no variable.
  """

  prefix: str
  model: str
  step: int
  sources: dict[str, str]
  random: tuple[str, ...]
  idle: tuple[str, ...]

  def Apply(self, variables: Mapping[str, tf.Variable]) -> None:
    """Sets variables to the checkpoint's values, one at a time.

    Args:
      variables: {path: variable}, of at least the planned ones.

    Raises:
      CheckpointError: where a file is damaged; some variables have changed.
    """
    with checkpoint_integrity.Explained(self.prefix):
      reader = tf.train.load_checkpoint(self.prefix)
      for path, source in self.sources.items():
        variable = variables[path]
        value = reader.get_tensor(checkpoint_integrity.Key(source))
        with tf.device(variable.device):
          variable.assign(value.astype(variable.dtype.as_numpy_dtype))

  def ToText(self) -> str:
    """One line: what is taken and what stays random."""
    averages = sum(source.endswith('/ema') for source in self.sources.values())
    text = (
      f'{len(self.sources)} variables start from {self.prefix} (model '
      f'{self.model}, step {self.step})'
    )
    if averages:
      text += f', {averages} of them from averages'
    text += f'; {len(self.random)} stay random'
    if self.random:
      text += f': {_Listed(self.random)}'
    if self.idle:
      text += f'; no variable fits {_Listed(map(repr, self.idle))}'
    return text


def _Rule(rule: Any) -> tuple[re.Pattern, str]:
  """(pattern, replacement), checked."""
  if (
    not isinstance(rule, (tuple, list))
    or len(rule) != 2
    or not isinstance(rule[1], str)
  ):
    raise ValueError(
      f'{_PARAM}.rules: {rule!r} is not a pair (pattern, replacement)'
    )
  return _Pattern(rule[0], 'rules'), rule[1]


def _Pattern(text: Any, name: str) -> re.Pattern:
  try:
    return re.compile(text)
  except (re.error, TypeError) as e:
    raise ValueError(
      f'{_PARAM}.{name}: {text!r} is not a regular expression: {e}'
    ) from e


def _Fit(pattern: re.Pattern, path: str) -> re.Match | None:
  """The match with the whole path, or with the longest of its ends."""
  start = 0
  while True:
    match = pattern.fullmatch(path, start)
    if match:
      return match
    start = path.find('/', start) + 1
    if not start:
      return None


def _Expand(match: re.Match, replacement: str) -> str:
  try:
    return match.expand(replacement)
  except (re.error, IndexError) as e:
    raise InitError(
      f'{_PARAM}.rules: the replacement {replacement!r} does not go with the '
      f'pattern {match.re.pattern!r}: {e}'
    ) from e


def _Find(checkpoint: str) -> str:
  """The prefix of the checkpoint that the param names."""
  path = os.path.abspath(os.path.expanduser(checkpoint))
  if not os.path.isdir(path):
    return checkpoint_files.PrefixOf(path)
  for folder in (path, os.path.join(path, 'train')):
    latest = checkpoint_files.Latest(folder)
    if latest:
      return latest
  raise InitError(
    f'{_PARAM}.checkpoint={checkpoint!r} (--init_checkpoint) holds no '
    'checkpoint; give the log directory of a run, or the prefix of a checkpoint'
  )


def _IsCompatible(
  spec: weights.VariableSpec, shape: tuple[int, ...], dtype: tf.DType
) -> bool:
  """Whether values fit; floating point is converted."""
  floating = spec.dtype.is_floating and dtype.is_floating
  return tuple(spec.shape) == shape and (spec.dtype == dtype or floating)


def _Problem(
  prefix: str,
  missing: Mapping[str, str],
  different: list[str],
  theirs: Iterable[str],
) -> str:
  """What does not fit, and what to write."""
  parts = []
  if missing:
    listed = [
      path if path == source else f'{path} (there {source})'
      for path, source in missing.items()
    ]
    parts.append(f'{len(missing)} are not in it: {_Listed(listed)}')
  if different:
    parts.append(
      f'{len(different)} have another shape or dtype: {_Listed(different)}'
    )
  paths = [*missing, *(text.split(' ')[0] for text in different)]
  parents = sorted({os.path.dirname(path) for path in paths})
  exclude = [f'{parent}/.*' for parent in parents[:3]]
  advice = f'add them to {_PARAM}.exclude to start at random, as in {exclude}'
  advice += f', or say in {_PARAM}.rules what they are called there'
  ours = {path.split('/')[0] for path in missing}
  roots = {path.split('/')[0] for path in theirs} - {'learner'}
  if len(ours) == len(roots) == 1 and ours != roots:
    rule = (f'{ours.pop()}/(.*)', f'{roots.pop()}/\\1')
    advice += f', as in {[rule]}'
  return f'variables of the model do not fit {prefix}: ' + (
    f'{"; ".join(parts)}. Either {advice}'
  )


def _Listed(items: Iterable[str]) -> str:
  items = list(items)
  rest = f' and {len(items) - _MAX_LISTED} more'
  return ', '.join(items[:_MAX_LISTED]) + rest * (len(items) > _MAX_LISTED)


def _Show(shape: tuple[int, ...], dtype: tf.DType) -> str:
  return f'{dtype.name} {list(shape)}'
