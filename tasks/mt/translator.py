"""Translation with a trained encoder-decoder, on the devices of its partitions.

The encoder runs once; the decoder writes one token of all sentences at a time,
with the keys and values of the tokens before kept on the device of the block
they are of. Since a token passes all partitions before the next one can be
written, one batch would keep one of K devices busy: a batch is cut into groups
that are searched side by side, while one group is in a partition the next one
is in another.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe import (
  base_layer,
  fprop_context,
  hyperparams,
  nested_map,
  weights,
)
from lingvo_gpipe.decoding import beam_search, greedy, token_rules
from lingvo_gpipe.gpipe import device_names, shared_weights
from lingvo_gpipe.gpipe import stage as stage_lib
from tasks.mt import transformer_cells

NestedMap = nested_map.NestedMap


def DefineParams(p: hyperparams.Params) -> None:
  """Defines what a search may be told.

  Args:
    p: gets the params beam_size, length_penalty, max_length_ratio,
      max_length_extra and max_groups.
  """
  p.Define('beam_size', 4, 'Sequences that are kept; 1 is greedy search.')
  p.Define(
    'length_penalty',
    0.6,
    'alpha: log-probabilities are divided by ((5 + length) / 6)^alpha; 0 '
    'prefers short translations.',
  )
  p.Define(
    'max_length_ratio',
    1.5,
    'A translation ends at so many times the tokens of its source, and '
    'max_length_extra more.',
  )
  p.Define('max_length_extra', 10, 'See max_length_ratio.')
  p.Define(
    'max_groups',
    None,
    'Groups of a batch that are searched side by side; None: as many as there '
    'are devices.',
  )


class _Cell:
  """A cell with its weights, on its device."""

  def __init__(self, cell: Any, theta: NestedMap, shared: dict, device: str):
    self.cell = cell
    self.theta = theta
    self.device = device
    self._shared = shared

  def __call__(self, method: str, *args: Any, **kwargs: Any) -> Any:
    """Calls a method of the cell with its weights."""
    context = fprop_context.FPropContext(
      do_eval=True, shared_weights=self._shared
    )
    with tf.device(self.device), context:
      return getattr(self.cell, method)(self.theta, *args, **kwargs)


class Translator:
  """Searches for the translations of batches.

  Args:
    stages: partitions of the cells of transformer_cells.py, such as those of a
      planned GPipe network.
    settings: params as of DefineParams.
    rules: which ids may be written.

  Raises:
    ValueError: for other cells, or settings that make no sense.
  """

  def __init__(
    self,
    stages: Sequence[stage_lib.Stage],
    settings: hyperparams.Params,
    rules: token_rules.TokenRules,
  ):
    self._stages = list(stages)
    self._net_cells = [cell for stage in stages for cell in stage.cells]
    self._settings = settings
    self._rules = rules
    Check(self._net_cells, settings)
    kinds = [type(cell) for cell in self._net_cells]
    self._target = kinds.index(transformer_cells.TargetEmbedding)

  def Translate(self, theta: NestedMap, batch: NestedMap) -> NestedMap:
    """Translates a batch.

    Args:
      theta: values of the network's variables.
      batch: inputs and source_paddings [batch, source time].

    Returns:
      What beam_search.Search returns, of beam_size sequences, with longest =
      the limit of the longest source; on the last partition's host.
    """
    num_groups = self._NumGroups(batch.inputs.shape[0])
    cells = self._Cells(theta)
    groups = [
      self._Group(
        cells, NestedMap(inputs=inputs, source_paddings=source_paddings)
      )
      for inputs, source_paddings in zip(
        _Split(batch.inputs, num_groups),
        _Split(batch.source_paddings, num_groups),
        strict=True,
      )
    ]
    longest = self._Longest(batch.inputs)
    with tf.device(self._host):
      groups = [_Padded(group, longest) for group in groups]
      return tf.nest.map_structure(lambda *x: tf.concat(x, 0), *groups)

  @property
  def _host(self) -> str:
    """Where the search itself runs."""
    return _HostOf(self._stages[-1].device)

  def _NumGroups(self, rows: int | None) -> int:
    """The most groups of equal size, within the limit."""
    devices = {stage.device for stage in self._stages}
    return math.gcd(rows or 1, self._settings.max_groups or len(devices))

  def _Longest(self, inputs: tf.Tensor) -> Any:
    """The limit of a source without padding."""
    p = self._settings
    if inputs.shape[1] is None:
      time = tf.cast(tf.shape(inputs)[1], tf.float32)
      longest = time * p.max_length_ratio + p.max_length_extra
      return tf.maximum(tf.cast(longest, tf.int32), 1)
    longest = inputs.shape[1] * p.max_length_ratio + p.max_length_extra
    return max(1, int(longest))

  def _Limits(self, paddings: tf.Tensor) -> tf.Tensor:
    """When each row ends, int32 [rows]."""
    p = self._settings
    lengths = tf.reduce_sum(1.0 - tf.cast(paddings, tf.float32), 1)
    limits = lengths * p.max_length_ratio + p.max_length_extra
    return tf.maximum(tf.cast(limits, tf.int32), 1)

  def _Cells(self, theta: NestedMap) -> list[_Cell]:
    cells, lenders = [], shared_weights.Find(self._net_cells)
    for stage in self._stages:
      of_stage = shared_weights.ThetaOf(stage, theta.cells, lenders)
      cells += [
        _Cell(cell, of_cell, of_stage.shared, stage.device)
        for cell, of_cell in zip(stage.cells, of_stage.cells, strict=True)
      ]
    return cells

  def _Group(self, cells: list[_Cell], batch: NestedMap) -> NestedMap:
    """Searches for the translations of one group."""
    encoder, target = cells[: self._target], cells[self._target]
    decoder, output = cells[self._target + 1 : -1], cells[-1]
    fields = _Fields(batch)
    x = batch.inputs
    for cell in encoder:
      x = cell('FProp', x, fields)
    source = target('Source', x)
    rows, beam = tf.shape(batch.inputs)[0], self._settings.beam_size
    with tf.device(self._host):
      limits = self._Limits(batch.source_paddings)
      longest = tf.reduce_max(limits)
    states = [
      cell('InitStates', rows * beam, longest, source) for cell in decoder
    ]
    # What does not change stays out of the loop's variables.
    sources = [s.source for s in states]

    def _Extend(ids, parents, own, step):
      x, extended = target('ExtendStep', ids, step), []
      for cell, of_cell, of_source in zip(decoder, own, sources, strict=True):
        if parents is not None:
          with tf.device(cell.device):
            of_cell = _Gather(of_cell, parents)
        x, after = cell(
          'ExtendStep',
          x,
          NestedMap(own=of_cell, source=of_source),
          step,
          batch.source_paddings,
        )
        extended.append(after.own)
      logits = output('Logits', x)
      with tf.device(output.device):
        return tf.nn.log_softmax(logits), extended

    search = functools.partial(
      beam_search.Search, beam_size=beam, alpha=self._settings.length_penalty
    )
    with tf.device(self._host):
      found = (greedy.Search if beam == 1 else search)(
        _Extend,
        [s.own for s in states],
        limits,
        self._rules,
        dtype=weights.AtLeastFloat32(self._net_cells[0].fprop_dtype),
      )
      if 'scores' not in found:
        penalty = beam_search.LengthPenalty(
          found.lengths, self._settings.length_penalty, found.log_probs.dtype
        )
        found.scores = found.log_probs / penalty
    return found


def _Fields(batch: NestedMap) -> NestedMap:
  """What encoder cells ask for, those for packed rows among them."""
  is_token = 1 - tf.cast(batch.source_paddings, tf.int32)
  return NestedMap(
    source_paddings=batch.source_paddings,
    source_segment_ids=is_token,
    source_positions=tf.cumsum(is_token, 1, exclusive=True),
  )


def _Gather(states: Any, parents: tf.Tensor) -> Any:
  return tf.nest.map_structure(lambda x: tf.gather(x, parents), states)


def _Padded(found: NestedMap, longest: int) -> NestedMap:
  """A group's sequences at the length of the whole batch."""
  missing = longest - tf.shape(found.ids)[2]
  ids = tf.pad(found.ids, [[0, 0], [0, 0], [0, missing]])
  if isinstance(longest, int):
    ids = tf.ensure_shape(ids, [None, None, longest])
  return NestedMap(found, ids=ids)


def _Split(x: tf.Tensor, num_groups: int) -> list[tf.Tensor]:
  return tf.split(x, num_groups) if num_groups > 1 else [x]


def _HostOf(device: str) -> str:
  return device_names.HostOf(device) if device else ''


def Check(
  cells: Sequence[base_layer.BaseLayer], settings: hyperparams.Params
) -> None:
  """Checks what a Translator would be made of.

  Args:
    cells: of the network.
    settings: params as of DefineParams.

  Raises:
    ValueError: for other cells, or settings that make no sense.
  """
  if transformer_cells.TargetEmbedding not in map(type, cells):
    raise ValueError(
      f'there is no TargetEmbedding among the cells from {cells[0].path} to '
      f'{cells[-1].path}: they are no encoder-decoder of '
      'tasks/mt/transformer_cells.py'
    )
  for name, least in (
    ('beam_size', 1),
    ('length_penalty', 0),
    ('max_length_ratio', 0),
    ('max_length_extra', 0),
  ):
    if settings.Get(name) < least:
      raise ValueError(f'{name}={settings.Get(name)} must be {least} or more')
  if settings.max_length_ratio == settings.max_length_extra == 0:
    raise ValueError(
      'max_length_ratio and max_length_extra are both 0: translations would '
      'have no tokens'
    )
