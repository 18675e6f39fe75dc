"""Slots: the state that training keeps for each variable.

A slot is declared as the spec of a variable, so that its memory is known before
any is taken, and is created on the device of its variable.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import weights

VariableSpec = weights.VariableSpec


def SlotSpec(variable: VariableSpec, name: str, value: float) -> VariableSpec:
  """The spec of a slot that is shaped like its variable.

  Args:
    variable: the variable's spec.
    name: of the slot.
    value: what each of its elements starts from.

  Returns:
    A spec with the path '<variable path>/<name>', of the variable's dtype, as
    the kernels demand.
  """
  return VariableSpec(
    path=f'{variable.path}/{name}',
    shape=variable.shape,
    dtype=variable.dtype,
    init=weights.WeightInit.Constant(value),
    trainable=False,
    collections=(),
    seed=variable.seed,
  )


def CreateSlot(spec: VariableSpec, variable: tf.Variable) -> tf.Variable:
  """Makes the slot on the device of its variable."""
  with tf.device(variable.device):
    return spec.Create()


def SpecsOf(variables: Any, variable_specs: Any = None) -> list[VariableSpec]:
  """The specs of a tree of variables, flat.

  Args:
    variables: tree of tf.Variable.
    variable_specs: their specs, a tree of the same structure. None makes specs
      of the variables: path, shape, dtype and trainability, no collections.

  Returns:
    One spec per variable.

  Raises:
    ValueError: where two variables have the same path.
  """
  if variable_specs is None:
    specs = [
      VariableSpec(
        path=v.name.removesuffix(':0'),
        shape=tuple(v.shape),
        dtype=v.dtype,
        init=weights.WeightInit.Constant(0.0),
        trainable=v.trainable,
        collections=(),
        seed=0,
      )
      for v in tf.nest.flatten(variables)
    ]
  else:
    tf.nest.assert_same_structure(variables, variable_specs)
    specs = tf.nest.flatten(variable_specs)
  paths = set()
  for spec in specs:
    if spec.path in paths:
      raise ValueError(
        f'two variables have the path {spec.path!r}, so their slots would '
        'share a name; give the layers different names'
      )
    paths.add(spec.path)
  return specs
