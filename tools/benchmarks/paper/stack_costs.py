"""The costs of the Transformer stack of all benchmarks, for simulations."""

from __future__ import annotations

from lingvo_gpipe.gpipe import gpipe
from tools.benchmarks import stack_sizes, transformer_stack
from tools.plan import model_costs


def NetCosts(sizes: stack_sizes.Sizes) -> model_costs.NetCosts:
  """Of training the stack by SGD, which keeps nothing beside the weights.

  Args:
    sizes: of the stack.

  Returns:
    The costs.
  """
  net = gpipe.GPipe.Params().Set(
    name='stack', cells=transformer_stack.Cells(sizes)
  )
  return model_costs.NetCosts(
    net.Instantiate(), transformer_stack.BatchSpec(sizes)
  )
