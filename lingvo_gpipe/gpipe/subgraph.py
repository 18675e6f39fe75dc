"""Functions that are parts of a traced graph.

`tf.compat.v1.wrap_function(...).prune` does the same, but copies operations one
by one in Python, those before the feeds included, and fails where one of the
several outputs of an operation is fed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lingvo_gpipe.gpipe import residuals


class Subgraphs:
  """Makes functions of parts of one graph.

  Args:
    graph: a FuncGraph that is complete.
  """

  def __init__(self, graph: Any):
    definition = graph.as_graph_def()
    self._nodes = {node.name: node for node in definition.node}
    self._library = definition.library
    self._versions = definition.versions
    # What the graph took from outside, such as large constants.
    self._captures = [(inner, outer) for outer, inner in graph.captures]

  def Function(
    self, fetches: Sequence[tf.Tensor], feeds: Sequence[tf.Tensor]
  ) -> tuple[Callable[..., list[tf.Tensor]], list[int]]:
    """The function from `feeds` to `fetches`.

    Args:
      fetches: tensors of the graph.
      feeds: tensors of the graph.

    Returns:
      (function, which of `feeds` it takes, by position).
    """
    captured = [inner for inner, unused_outer in self._captures]
    outer = {inner.ref(): value for inner, value in self._captures}
    between = residuals.FindBetween(fetches, [*feeds, *captured])
    used = [x for x in between.feeds if x.ref() not in outer]
    constants = [x for x in between.feeds if x.ref() in outer]
    definition = self._Definition(between.operations)
    fed = {x.ref(): i for i, x in enumerate(used)}
    computed = [x for x in fetches if x.ref() not in fed]

    def _Import(*values):
      inputs = {x.name: v for x, v in zip(used, values, strict=True)}
      inputs.update({x.name: outer[x.ref()] for x in constants})
      results = []
      if computed:
        results = tf.graph_util.import_graph_def(
          definition,
          input_map=inputs,
          return_elements=[x.name for x in computed],
          name='',
        )
      rest = iter(results)
      return [
        values[fed[x.ref()]] if x.ref() in fed else next(rest) for x in fetches
      ]

    function = tf.compat.v1.wrap_function(
      _Import, [tf.TensorSpec(x.shape, x.dtype) for x in used]
    )
    position = {x.ref(): i for i, x in enumerate(feeds)}
    return function, [position[x.ref()] for x in used]

  def _Definition(
    self, operations: Sequence[tf.Operation]
  ) -> tf.compat.v1.GraphDef:
    """These operations; their other inputs are left to an input map."""
    names = {op.name for op in operations}
    definition = tf.compat.v1.GraphDef(
      library=self._library, versions=self._versions
    )
    for op in operations:
      node = definition.node.add()
      node.CopyFrom(self._nodes[op.name])
      # Nothing waits for, or is put beside, what is not in this part.
      kept = [x for x in node.input if x[0] != '^' or x[1:] in names]
      del node.input[:]
      node.input.extend(kept)
      node.attr.pop('_class', None)
    return definition
