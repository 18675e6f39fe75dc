"""BaseLayer: Params -> variable specs and children -> theta -> FProp.

A layer's life:

  layer = SomeLayer.Params().Set(name='net', ...).Instantiate()
  layer.VariableSpecs()         # shapes and dtypes; nothing is allocated
  layer.InstantiateVariables()  # the only step that takes memory
  layer.FProp(layer.theta, inputs)

Subclasses declare weights and children in `__init__` and compute in `FProp`,
which is a pure function of `theta` (a NestedMap of tensors shaped like the tree
of layers) and of its inputs. It runs eagerly and inside `tf.function`.
"""

from __future__ import annotations

import numbers
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from lingvo_gpipe import hyperparams, layer_in_context, nested_map, weights

NestedMap = nested_map.NestedMap
WeightParams = weights.WeightParams
WeightInit = weights.WeightInit

DEFAULT_RANDOM_SEED = 1

# `parent`: of the layer that is about to be constructed.
_adopting = threading.local()


def ChildNames(name: str, params: list[Any]) -> list[str]:
  """The names of a list of children, for those that have none of their own.

  Args:
    name: of the list.
    params: of each child.

  Returns:
    For each its param `name`, or else its place: `<name>_000`.
  """
  return [p.name or f'{name}_{i:03d}' for i, p in enumerate(params)]


class BaseLayer(layer_in_context.LayerInContext):
  """The base class of all layers, cells and tasks.

  Attributes:
    BATCH_FIELDS: names of the batch's fields that this layer, used as a cell,
      asks for. They go straight to its partition, and it is called as
      `FProp(theta, inputs, batch)`.
    WEIGHS_EXAMPLES: whether its loss, as the last cell, goes by
      `example_weights`.
  """

  BATCH_FIELDS: tuple[str, ...] = ()
  WEIGHS_EXAMPLES: bool = False

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    """The params of every layer; subclasses extend them."""
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', '', "The layer's part of its variables' names.")
    p.Define('dtype', None, "Dtype of the variables; None: the parent's.")
    p.Define(
      'fprop_dtype',
      None,
      'Dtype of the computation; None: the dtype of the parent computation, at '
      'the root the dtype of the variables.',
    )
    p.Define(
      'random_seed',
      None,
      'Seed of initial values and dropout; None: of the parent.',
    )
    p.Define(
      'params_init',
      None,
      'How weights start that say nothing else; None: as those of the parent, '
      'at the root GlorotUniform.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    if not params.name:
      raise ValueError(
        f'{type(self).__name__} needs a name: set its param "name"'
      )
    self.params = params.Copy()
    self.params.Freeze()
    # Known from the start, so that errors of constructors have the whole path.
    self._parent: BaseLayer | None = getattr(_adopting, 'parent', None)
    _adopting.parent = None
    self._children: dict[str, BaseLayer | list[BaseLayer]] = {}
    self._child_names: set[str] = set()
    self._weights: dict[str, tuple[WeightParams, bool]] = {}
    self._vars: NestedMap | None = None

  # Declaration: no tensors, no memory.

  def CreateVariable(
    self, name: str, weight: WeightParams, trainable: bool = True
  ) -> None:
    """Declares a weight, later found as `theta.<name>`.

    Args:
      name: unique among the layer's weights and children.
      weight: its shape and how it starts.
      trainable: False for state that no gradient changes.
    """
    self._CheckNewName(name)
    if any(not isinstance(d, numbers.Integral) or d <= 0 for d in weight.shape):
      raise ValueError(
        f'{self.path}: the shape of {name!r} must be of positive integers, '
        f'not {weight.shape}'
      )
    self._weights[name] = (weight, trainable)

  def CreateChild(self, name: str, params: Any) -> BaseLayer:
    """Makes a child layer, found as `self.<name>` and `theta.<name>`."""
    self._CheckNewName(name)
    self._children[name] = self._Adopt(params, name)
    setattr(self, name, self._children[name])
    return self._children[name]

  def CreateChildren(self, name: str, params: list[Any]) -> list[BaseLayer]:
    """Makes a list of children, found as `self.<name>` and `theta.<name>`.

    A child without a name of its own is called by its place: `<name>_000`.

    Args:
      name: of the list.
      params: of each child.

    Returns:
      The children.

    Raises:
      ValueError: where two children have the same name.
    """
    self._CheckNewName(name)
    children = [
      self._Adopt(p, child_name)
      for p, child_name in zip(params, ChildNames(name, params), strict=True)
    ]
    self._children[name] = children
    setattr(self, name, children)
    return children

  def _CheckNewName(self, name: str) -> None:
    if name in self._weights or name in dir(self):
      raise ValueError(
        f'{self.path}: {name!r} is taken by a weight, a child or an attribute '
        f'of {type(self).__name__}; choose another name'
      )

  def _Adopt(self, params: Any, default_name: str) -> BaseLayer:
    name = params.name or default_name
    if name in self._child_names:
      raise ValueError(
        f'{self.path}: two children are called {name!r}, so their variables '
        'would share a name; give each its own param "name"'
      )
    self._child_names.add(name)
    _adopting.parent = self
    try:
      return params.Instantiate(name=name)
    finally:
      _adopting.parent = None

  # What follows from the layer's place in the model.

  @property
  def path(self) -> str:
    """Names from the root to this layer, such as 'net/stem/conv'."""
    if self._parent is None:
      return self.params.name
    return f'{self._parent.path}/{self.params.name}'

  @property
  def dtype(self) -> tf.DType:
    """Of the variables."""
    if self.params.dtype is not None:
      return self.params.dtype
    return self._parent.dtype if self._parent is not None else tf.float32

  @property
  def fprop_dtype(self) -> tf.DType:
    """Of the computation."""
    if self.params.fprop_dtype is not None:
      return self.params.fprop_dtype
    if self._parent is not None and self.params.dtype is None:
      return self._parent.fprop_dtype
    return self.dtype

  @property
  def random_seed(self) -> int:
    """Of the run, unless a layer on the way up has its own."""
    if self.params.random_seed is not None:
      return self.params.random_seed
    if self._parent is not None:
      return self._parent.random_seed
    return DEFAULT_RANDOM_SEED

  @property
  def params_init(self) -> hyperparams.Params:
    """How weights start that say nothing else."""
    if self.params.params_init is not None:
      return self.params.params_init
    if self._parent is not None:
      return self._parent.params_init
    return WeightInit.GlorotUniform()

  @property
  def children(self) -> dict[str, BaseLayer | list[BaseLayer]]:
    """Children and lists of children by name."""
    return dict(self._children)

  def Descendants(self) -> Iterator[BaseLayer]:
    """This layer and all below it, depth first."""
    yield self
    for child in self._children.values():
      for layer in child if isinstance(child, list) else [child]:
        yield from layer.Descendants()

  def _MapTree(self, own, child) -> NestedMap:
    """A tree shaped like theta: own(name) for weights, child(layer, name)."""
    tree = NestedMap({name: own(name) for name in self._weights})
    for name, layer in self._children.items():
      if isinstance(layer, list):
        tree[name] = [child(x, name, i) for i, x in enumerate(layer)]
      else:
        tree[name] = child(layer, name, None)
    return tree

  def VariableSpecs(self) -> NestedMap:
    """The specs of all variables, as a tree shaped like theta."""
    return self._MapTree(
      self._Spec, lambda layer, unused_name, unused_i: layer.VariableSpecs()
    )

  def _Spec(self, name: str) -> weights.VariableSpec:
    weight, trainable = self._weights[name]
    return weights.VariableSpec(
      path=f'{self.path}/{name}',
      shape=tuple(int(d) for d in weight.shape),
      dtype=weight.dtype or self.dtype,
      init=weight.init or self.params_init,
      trainable=trainable,
      collections=tuple(weight.collections),
      seed=self.random_seed,
    )

  # Variables.

  def InstantiateVariables(
    self, devices: Mapping[str, str] | None = None
  ) -> None:
    """Creates the variables of this layer and all below it.

    They are created on the current device; GPipe puts each of its cells on the
    device of its partition.

    Args:
      devices: {variable path: device string} of those that shall be elsewhere.

    Raises:
      RuntimeError: in a second call, and inside a tf.function.
    """
    if not tf.executing_eagerly():
      raise RuntimeError(
        f'{self.path}: create variables before, not inside, a tf.function'
      )
    if self._vars is not None:
      raise RuntimeError(f'{self.path}: its variables exist already')

    def _Child(layer, unused_name, unused_i):
      layer.InstantiateVariables(devices)
      return layer.vars

    def _Own(name):
      spec = self._Spec(name)
      with tf.device((devices or {}).get(spec.path, '')):
        return spec.Create()

    self._vars = self._MapTree(_Own, _Child)

  @property
  def vars(self) -> NestedMap:
    """The variables, as a tree shaped like theta."""
    if self._vars is None:
      raise RuntimeError(
        f'{self.path} has no variables yet: call InstantiateVariables() first'
      )
    return self._vars

  @property
  def theta(self) -> NestedMap:
    """The variables' values, read on their devices, ready for FProp."""
    return self.ThetaFrom(self.vars)

  def ThetaFrom(self, variables: NestedMap) -> NestedMap:
    """Values for FProp out of `variables`, a tree shaped like `vars`.

    Trainable weights are cast to the layer's fprop_dtype; state, such as
    moving moments, keeps its precision.
    """

    def _Own(name):
      value = variables[name]
      with tf.device(value.device):
        value = tf.identity(value)
        unused_weight, trainable = self._weights[name]
        if trainable and value.dtype.is_floating:
          value = tf.cast(value, self.fprop_dtype)
      return value

    def _Child(layer, name, i):
      tree = variables[name] if i is None else variables[name][i]
      return layer.ThetaFrom(tree)

    return self._MapTree(_Own, _Child)

  def AbstractTheta(self) -> NestedMap:
    """A theta of placeholders in the current graph, to trace FProp with.

    Takes no memory whatever the size of the layer.
    """
    placeholders = tf.nest.map_structure(
      lambda spec: tf.compat.v1.placeholder(spec.dtype, spec.shape),
      self.VariableSpecs(),
    )
    return self.ThetaFrom(placeholders)

  # Computation.

  def FProp(self, theta: NestedMap, *args: Any) -> Any:
    """The layer's function; a pure one of theta and the inputs.

    Args:
      theta: values of the weights, a tree shaped like `vars`.
      *args: the inputs.

    Returns:
      The outputs.
    """
    raise NotImplementedError(f'{type(self).__name__}.FProp')

  def __call__(self, *args: Any) -> Any:
    """FProp with the variables as they are."""
    return self.FProp(self.theta, *args)
