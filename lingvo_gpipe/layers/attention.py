"""Multi-head attention, to the same sequence or to another one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map, weights
from lingvo_gpipe.layers import attention_mask, dense, dropout, scaled_init

NestedMap = nested_map.NestedMap


class MultiHeadAttention(base_layer.BaseLayer):
  """Scaled dot-product attention of several heads.

  Vaswani et al., Attention Is All You Need (arXiv 1706.03762), section 3.2:

    softmax(q k^T / sqrt(head_dim)) v

  for each head, of which the results are joined and multiplied by a last
  matrix. Queries, keys and values of one sequence come from one product, whose
  columns are all queries, all keys, all values, each of them head by head.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('dim', 0, 'Width of queries and outputs.')
    p.Define('num_heads', 1, 'How many heads there are.')
    p.Define('head_dim', None, 'Width of a head; None: dim / num_heads.')
    p.Define(
      'source_dim',
      None,
      'Width of the sequence that is attended to, in FProp `source`; None: the '
      'queries attend to their own sequence.',
    )
    p.Define('causal', False, 'Whether a token sees no later ones.')
    p.Define('use_bias', True, 'Whether the products have biases.')
    p.Define(
      'keep_prob', 1.0, 'Dropout of the probabilities: how likely one stays.'
    )
    p.Define(
      'output_init_scale',
      1.0,
      'The last matrix starts this many times as large; see scaled_init.py.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    self._CheckParams()
    self._head_dim = p.head_dim or p.dim // p.num_heads
    width = p.num_heads * self._head_dim
    if p.source_dim is None:
      self.CreateChild('qkv', self._Dense(p.dim, 3 * width))
    else:
      self.CreateChild('query', self._Dense(p.dim, width))
      self.CreateChild('kv', self._Dense(p.source_dim, 2 * width))
    post = self._Dense(width, p.dim)
    if p.output_init_scale != 1.0:
      post.params_init = scaled_init.ScaledInit(
        self.params_init, p.output_init_scale
      )
    self.CreateChild('post', post)
    drop = dropout.Dropout.Params().Set(keep_prob=p.keep_prob)
    self.CreateChild('dropout', drop)

  def _Dense(self, input_dim: int, output_dim: int) -> hyperparams.Params:
    return dense.Dense.Params().Set(
      input_dim=input_dim,
      output_dim=output_dim,
      use_bias=self.params.use_bias,
    )

  def _CheckParams(self) -> None:
    p = self.params
    for name in ('dim', 'num_heads', 'head_dim', 'source_dim'):
      value = p.Get(name)
      if value is not None and value < 1:
        raise ValueError(f'{self.path}: {name}={value} must be 1 or more')
    if p.head_dim is None and p.dim % p.num_heads:
      raise ValueError(
        f'{self.path}: dim={p.dim} is not a multiple of '
        f'num_heads={p.num_heads}; change one of them, or set head_dim'
      )
    if p.causal and p.source_dim is not None:
      raise ValueError(
        f'{self.path}: causal=True has no meaning for another sequence, '
        f'source_dim={p.source_dim}; set only one of them'
      )

  def FProp(
    self,
    theta: NestedMap,
    queries: tf.Tensor,
    source: tf.Tensor | None = None,
    paddings: tf.Tensor | None = None,
    segment_ids: tf.Tensor | None = None,
    source_segment_ids: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Applies the layer.

    Softmax is computed in float32 or better. A query that may see no token at
    all gets some mean of the values, a finite one: leave its result out.

    Args:
      theta: qkv, or query and kv, and post.
      queries: [batch, time, dim].
      source: [batch, source time, source_dim], with param source_dim only.
      paddings: [batch, source time], 1.0 (or True) at tokens to leave out;
        without source_dim of the queries' own sequence.
      segment_ids: int [batch, time]: a query sees tokens with its own number
        only, so that several sentences can be packed into one row.
      source_segment_ids: int [batch, source time], with param source_dim only.

    Returns:
      [batch, time, dim].

    Raises:
      ValueError: for a wrong width, or arguments that do not fit the params.
    """
    self._CheckInputs(queries, source, segment_ids, source_segment_ids)
    if source is None:
      q, k, v = self._Heads(theta, 'qkv', queries)
      source, source_segment_ids = queries, segment_ids
    else:
      (q,) = self._Heads(theta, 'query', queries)
      k, v = self._Heads(theta, 'kv', source)
    seen = attention_mask.Seen(
      _Time(queries),
      _Time(source),
      causal=self.params.causal,
      paddings=paddings,
      segment_ids=segment_ids,
      source_segment_ids=source_segment_ids,
    )
    return self._Attend(theta, q, k, v, seen)

  # Decoding: a token at a time, with the keys and values of those before.

  def InitStates(
    self, theta: NestedMap, rows: Any, max_length: int
  ) -> NestedMap:
    """Room for the keys and values of a sequence that is about to be written.

    Args:
      theta: as for FProp.
      rows: number of sequences.
      max_length: tokens of the longest.

    Returns:
      NestedMap of key and value, [rows, num_heads, max_length, head_dim].
    """
    shape = [rows, self.params.num_heads, max_length, self._head_dim]
    empty = tf.zeros(shape, theta.qkv.w.dtype)
    return NestedMap(key=empty, value=empty)

  def SourceStates(self, theta: NestedMap, source: tf.Tensor) -> NestedMap:
    """The keys and values of another sequence, computed once.

    Args:
      theta: as for FProp.
      source: [batch, source time, source_dim].

    Returns:
      NestedMap of key and value, [batch, num_heads, source time, head_dim].
    """
    self._CheckWidth('source', source, 'source_dim')
    key, value = self._Heads(theta, 'kv', source)
    return NestedMap(key=key, value=value)

  def ExtendStep(
    self, theta: NestedMap, x: tf.Tensor, states: NestedMap, step: tf.Tensor
  ) -> tuple[tf.Tensor, NestedMap]:
    """Attention of the next token to itself and to those before.

    Args:
      theta: as for FProp.
      x: [rows, dim], token `step` of each sequence.
      states: of InitStates, with the tokens before `step`.
      step: int32 scalar.

    Returns:
      ([rows, dim], states with this token).
    """
    q, key, value = self._Heads(theta, 'qkv', x[:, tf.newaxis])
    places = tf.range(_Size(states.key, 2))
    here = tf.equal(places, step)[:, tf.newaxis]
    states = NestedMap(
      key=tf.where(here, key, states.key),
      value=tf.where(here, value, states.value),
    )
    outputs = self._Attend(theta, q, states.key, states.value, places <= step)
    return outputs[:, 0], states

  def AttendToStates(
    self,
    theta: NestedMap,
    queries: tf.Tensor,
    states: NestedMap,
    paddings: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """As FProp to another sequence, of which keys and values are there.

    Args:
      theta: as for FProp.
      queries: [batch, time, dim].
      states: of SourceStates.
      paddings: None or [batch, source time], as for FProp.

    Returns:
      [batch, time, dim].
    """
    (q,) = self._Heads(theta, 'query', queries)
    seen = attention_mask.Seen(
      _Time(queries), _Size(states.key, 2), paddings=paddings
    )
    return self._Attend(theta, q, states.key, states.value, seen)

  def _Attend(
    self,
    theta: NestedMap,
    q: tf.Tensor,
    k: tf.Tensor,
    v: tf.Tensor,
    seen: tf.Tensor | None,
  ) -> tf.Tensor:
    """What queries [batch, heads, time, head_dim] get, [batch, time, dim]."""
    # [batch, heads, time, source time]
    scores = tf.matmul(q * self._head_dim**-0.5, k, transpose_b=True)
    scores = tf.cast(scores, weights.AtLeastFloat32(scores.dtype))
    scores = attention_mask.Apply(scores, seen)
    probabilities = tf.cast(tf.nn.softmax(scores), v.dtype)
    probabilities = self.dropout.FProp(theta.dropout, probabilities)
    # [batch, time, heads, head_dim]
    outputs = tf.transpose(tf.matmul(probabilities, v), [0, 2, 1, 3])
    rows = tf.reshape(outputs, [-1, self.params.num_heads * self._head_dim])
    outputs = self.post.FProp(theta.post, rows)
    return tf.reshape(outputs, [-1, _Size(q, 2), self.params.dim])

  def _CheckInputs(
    self,
    queries: tf.Tensor,
    source: tf.Tensor | None,
    segment_ids: tf.Tensor | None,
    source_segment_ids: tf.Tensor | None,
  ) -> None:
    p = self.params
    self._CheckWidth('queries', queries, 'dim')
    if p.source_dim is None:
      for name, x in (
        ('source', source),
        ('source_segment_ids', source_segment_ids),
      ):
        if x is not None:
          raise ValueError(
            f'{self.path}: {name} is given, but source_dim=None: the queries '
            'attend to their own sequence; set source_dim'
          )
      return
    if source is None:
      raise ValueError(
        f'{self.path}: source_dim={p.source_dim} needs the argument source'
      )
    self._CheckWidth('source', source, 'source_dim')
    if (segment_ids is None) != (source_segment_ids is None):
      raise ValueError(
        f'{self.path}: give segment_ids and source_segment_ids, or neither'
      )

  def _CheckWidth(self, name: str, x: tf.Tensor, param: str) -> None:
    expected = self.params.Get(param)
    if x.shape.rank != 3 or x.shape[-1] != expected:
      raise ValueError(
        f'{self.path}: {name} {x.shape} must be [batch, time, '
        f'{param}={expected}]'
      )

  def _Heads(self, theta: NestedMap, name: str, x: tf.Tensor) -> list[Any]:
    """The parts of a product, each [batch, heads, time, head_dim]."""
    rows = tf.reshape(x, [-1, x.shape[-1]])
    product = self.children[name].FProp(theta[name], rows)
    num_heads = self.params.num_heads
    parts = product.shape[-1] // (num_heads * self._head_dim)
    if parts == 1:
      split = [-1, _Time(x), num_heads, self._head_dim]
      return [tf.transpose(tf.reshape(product, split), [0, 2, 1, 3])]
    split = [-1, _Time(x), parts, num_heads, self._head_dim]
    product = tf.transpose(tf.reshape(product, split), [2, 0, 3, 1, 4])
    return tf.unstack(product)


def _Time(x: tf.Tensor) -> int | tf.Tensor:
  """The size of dimension 1."""
  return _Size(x, 1)


def _Size(x: tf.Tensor, axis: int) -> int | tf.Tensor:
  """The static size of a dimension where it is known, else at run time."""
  return tf.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]
