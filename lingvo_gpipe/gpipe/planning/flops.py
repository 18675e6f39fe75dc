"""Counts the floating-point operations of a graph.

TensorFlow's profiler does most of it: it knows a formula for each common
operation, a multiplication and an addition being two. This module

- adds what it has no formula for: Einsum and the gradients of depthwise
  convolutions;
- replaces two formulas that are not exact: products of batches of matrices,
  where the profiler overlooks transposed arguments, and gradients of
  convolutions, where it assumes SAME padding and sizes that the stride divides;
- looks into functions, which the profiler does not: the bodies of called
  functions, of loops (one iteration) and of conditionals (the longest branch).

Operations that only move data count nothing, and neither do some elementwise
ones (exp, tanh, relu): next to matrix products they do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import tensorflow as tf

# Operations that run functions, and the attributes that name them.
_CALLS = {
  'PartitionedCall': ('f',),
  'StatefulPartitionedCall': ('f',),
  'While': ('cond', 'body'),
  'StatelessWhile': ('cond', 'body'),
}
_BRANCHES = {
  'If': ('then_branch', 'else_branch'),
  'StatelessIf': ('then_branch', 'else_branch'),
  'Case': ('branches',),
  'StatelessCase': ('branches',),
}


def CountFlops(
  graph: tf.Graph, operations: Iterable[tf.Operation] | None = None
) -> int:
  """The floating-point operations of running `operations` once.

  Args:
    graph: with static shapes; nothing is run.
    operations: of the graph; None for all of them.

  Returns:
    Their number.
  """
  if operations is None:
    operations = graph.get_operations()
  by_profiler = _ProfilerFlops(graph)
  total = 0
  for op in operations:
    if op.type in _FORMULAS:
      total += _FORMULAS[op.type](op)
    elif op.type in _CALLS:
      total += sum(_CountFunctions(op, _CALLS[op.type]))
    elif op.type in _BRANCHES:
      total += max(_CountFunctions(op, _BRANCHES[op.type]))
    else:
      total += by_profiler.get(op.name, 0)
  return total


def _ProfilerFlops(graph: tf.Graph) -> dict[str, int]:
  """What TensorFlow counts, by name of the operation."""
  builder = tf.compat.v1.profiler.ProfileOptionBuilder
  options = (
    builder(builder.float_operation())
    .with_empty_output()
    .select(['float_ops'])
    .build()
  )
  logger = tf.get_logger()
  level = logger.level
  logger.setLevel('ERROR')  # It deplores its age at the first call.
  try:
    root = tf.compat.v1.profiler.profile(graph, cmd='scope', options=options)
  finally:
    logger.setLevel(level)
  counts, nodes = {}, [root]
  while nodes:
    node = nodes.pop()
    counts[node.name] = node.float_ops
    nodes.extend(node.children)
  return counts


def _CountFunctions(op: tf.Operation, attributes: tuple[str, ...]) -> list[int]:
  counts = []
  for attribute in attributes:
    value = op.get_attr(attribute)
    for function in value if isinstance(value, list) else [value]:
      # Not public, but nothing public leads to the graph of a called function.
      counts.append(CountFlops(op.graph._get_function(function.name).graph))
  return counts


def _Elements(tensor: tf.Tensor) -> int:
  return math.prod(tensor.shape.as_list())


def _BatchMatMul(op: tf.Operation) -> int:
  summed = op.inputs[0].shape[-2 if op.get_attr('adj_x') else -1]
  return 2 * _Elements(op.outputs[0]) * summed


def _Conv2DBackprop(op: tf.Operation) -> int:
  """2 x elements of the output gradient x weights that made each of them."""
  gradient = op.inputs[2]
  if op.type.endswith('Input'):
    filter_shape = op.inputs[1].shape.as_list()
  else:
    filter_shape = op.outputs[0].shape.as_list()
  return 2 * _Elements(gradient) * math.prod(filter_shape[:3])


def _DepthwiseBackprop(op: tf.Operation) -> int:
  if op.type.endswith('Input'):
    filter_shape = op.inputs[1].shape.as_list()
  else:
    filter_shape = op.outputs[0].shape.as_list()
  return 2 * _Elements(op.inputs[2]) * math.prod(filter_shape[:2])


def _Einsum(op: tf.Operation) -> int:
  """The product of all labels' sizes: once for products, once for sums."""
  equation = op.get_attr('equation').decode()
  terms, output = equation.replace(' ', '').split('->')
  sizes: dict[str, int] = {}
  terms = terms.split(',')
  for term, tensor in zip(terms, op.inputs, strict=True):
    dims = tensor.shape.as_list()
    if '...' in term:
      # Label the ellipsis by distance from its right end, as it broadcasts.
      left, right = term.split('...')
      dots = len(dims) - len(left) - len(right)
      labels = [*left, *(f'.{i}' for i in range(dots, 0, -1)), *right]
    else:
      labels = list(term)
    for label, dim in zip(labels, dims, strict=True):
      sizes[label] = max(sizes.get(label, 1), dim)
  summed = any(
    size > 1 and not label.startswith('.') and label not in output
    for label, size in sizes.items()
  )
  return math.prod(sizes.values()) * ((len(terms) > 1) + summed)


_FORMULAS: dict[str, Callable[[tf.Operation], int]] = {
  'BatchMatMul': _BatchMatMul,
  'BatchMatMulV2': _BatchMatMul,
  'BatchMatMulV3': _BatchMatMul,
  'Conv2DBackpropFilter': _Conv2DBackprop,
  'Conv2DBackpropInput': _Conv2DBackprop,
  'DepthwiseConv2dNativeBackpropFilter': _DepthwiseBackprop,
  'DepthwiseConv2dNativeBackpropInput': _DepthwiseBackprop,
  'Einsum': _Einsum,
}
