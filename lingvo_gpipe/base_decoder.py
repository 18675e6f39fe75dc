"""Decoders: what a trained network writes, and how good that is.

A task whose param `decoder` is set can be decoded: by --job=decoder, which
follows a run, and by the trainer after its last step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lingvo_gpipe import base_input, hyperparams, nested_map

NestedMap = nested_map.NestedMap


class BaseDecoder:
  """The base class of decoders.

  Args:
    params: of the decoder.
    net: a GPipe network, planned before Decode is called.
    input_generator: of the dataset to decode.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = hyperparams.InstantiableParams(cls)
    p.Define(
      'datasets',
      [],
      "Which are decoded: 'dev', 'test' or both; [] is the test data, if the "
      'model has any.',
    )
    return p

  def __init__(
    self,
    params: hyperparams.InstantiableParams,
    net: Any,
    input_generator: base_input.BaseInput,
  ):
    self.params = params.Copy()
    self.params.Freeze()
    self.net = net
    self.input = input_generator

  def Decode(self, theta: NestedMap, batch: NestedMap) -> NestedMap:
    """Decodes a batch; called while a tf.function is traced.

    Args:
      theta: values of the network's variables.
      batch: of the input.

    Returns:
      NestedMap of tensors [batch, ...].
    """
    raise NotImplementedError(f'{type(self).__name__}.Decode')

  def ServingSignatures(self) -> dict[str, Any]:
    """How the model is called once it is exported; the net has no plan then.

    Returns:
      {name: export.serving_signature.ServingSignature} with `compute`.
    """
    raise NotImplementedError(
      f'{type(self).__name__} has no ServingSignatures, so models with it '
      'cannot be exported; define the method'
    )

  def Rows(
    self, batch: Mapping[str, Any], outputs: Mapping[str, Any]
  ) -> list[Any]:
    """What is kept of a batch, for people.

    Args:
      batch: NumPy arrays [examples, ...], without rows that only fill up.
      outputs: likewise, what Decode returned.

    Returns:
      Something for each example, as Write takes it.
    """
    raise NotImplementedError(f'{type(self).__name__}.Rows')

  def Write(self, path: str, rows: Sequence[Any]) -> None:
    """Writes a file of rows; who reads it sees it whole.

    Args:
      path: of the file.
      rows: of Rows, all of them, in the order of the dataset.
    """
    raise NotImplementedError(f'{type(self).__name__}.Write')

  def Scores(self, rows: Sequence[Any]) -> dict[str, float]:
    """How good a dataset is decoded.

    Args:
      rows: of Rows, all of them.

    Returns:
      {metric: value}.
    """
    raise NotImplementedError(f'{type(self).__name__}.Scores')
