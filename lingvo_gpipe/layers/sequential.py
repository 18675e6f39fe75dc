"""Layers one after another, as one layer."""

from __future__ import annotations

from typing import Any

from lingvo_gpipe import base_layer, hyperparams, nested_map


class Sequential(base_layer.BaseLayer):
  """Each layer receives what the one before it returned."""

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('layers', [], 'Params of the layers; none: the identity.')
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    self.CreateChildren('layers', list(self.params.layers))

  def FProp(self, theta: nested_map.NestedMap, inputs: Any) -> Any:
    """Applies the layers from the first to the last."""
    for layer, layer_theta in zip(self.layers, theta.layers, strict=True):
      inputs = layer.FProp(layer_theta, inputs)
    return inputs
