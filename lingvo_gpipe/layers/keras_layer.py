"""A layer or model of Keras as a cell.

  KerasLayer.FromLayer(keras.layers.Conv2D(64, 3), input_shape=(32, 32, 3))
  KerasLayer.FromLayer(functional_model)

The params hold what Keras serializes, so they have a text like all others.
Nothing but the layer's form is taken over, not the values of its weights: the
cell's variables start from Keras' initializers, drawn by the seed of the run
and their own paths, and are created with all others on the device of their
partition. Constructing and planning a cell take no memory.

What Keras keeps in state, and pipelines can't:

- Random numbers (Dropout) come from BaseLayer.StatelessSeed, whatever seed
  the layer's generators have: a re-materialized forward pass draws the same
  ones. Keras' global generator is refused.
- Weights that change in a forward pass, as the moments of BatchNormalization,
  are refused in training.
- Regularizers, constraints and add_loss are refused: they would be lost.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import keras
import tensorflow as tf

from lingvo_gpipe import base_layer, hyperparams, nested_map, weights
from lingvo_gpipe.layers import keras_config

NestedMap = nested_map.NestedMap

# In place of names that Keras makes up by counting layers in the process.
_LAYER_NAME = 'keras_layer'
_SEED_NAME = 'seed_generator_state'
# How TensorFlow says that it cannot read a variable from here.
_FOREIGN_VARIABLE = (
  _SEED_NAME,
  'capture an EagerTensor',
  'must be from the same graph',
)
_OWN_GENERATOR = (
  'for random numbers let it have a keras.random.SeedGenerator as an '
  'attribute, or use layers.dropout.Dropout'
)
_MIXED_POLICIES = {
  (tf.float32, tf.bfloat16): 'mixed_bfloat16',
  (tf.float32, tf.float16): 'mixed_float16',
}


class _KerasVariableSpec(weights.VariableSpec):
  """A variable that one of Keras' initializers starts."""

  def Create(self) -> tf.Variable:
    """Makes the variable on the current device."""
    return tf.Variable(
      self._InitialValue,
      trainable=self.trainable,
      name=self.path,
      shape=self.shape,
      dtype=self.dtype,
    )

  def _InitialValue(self) -> tf.Tensor:
    described = self.init.initializer
    if callable(described):
      return described(self.shape, dtype=self.dtype.name)
    described = keras_config.Plain(described)
    config = described['config']
    if 'seed' in config and config['seed'] is None:
      # Else Keras would draw a seed from the state of Python's generator.
      seed = weights.Hash64('init', self.seed, self.path) % 2**31
      described = {**described, 'config': {**config, 'seed': seed}}
    initializer = keras.initializers.deserialize(described)
    return initializer(self.shape, dtype=self.dtype.name)


class KerasLayer(base_layer.BaseLayer):
  """A Keras layer, Sequential or functional model of one input.

  The cell's dtypes take the place of the layer's own policy; layers within it
  that have another policy keep that.

  Attributes:
    weight_names: of the weights in `theta`, in the order of Keras' own
      `layer.weights` and `layer.get_weights()`.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('layer', None, 'What keras.layers.serialize gives; see FromLayer.')
    p.Define('input_shape', None, 'Shape of the inputs without the batch.')
    return p

  @classmethod
  def FromLayer(
    cls, layer: keras.Layer, input_shape: tuple[int, ...] | None = None
  ) -> hyperparams.InstantiableParams:
    """Params of a layer that exists.

    Args:
      layer: of Keras; the values of its weights do not matter.
      input_shape: of the inputs, without the batch; may be left out for what
        is built already.

    Returns:
      The Params, without a name.

    Raises:
      ValueError: where the input shape is not known, or Keras can't serialize
        the layer.
    """
    if input_shape is None:
      input_shape = keras_config.BuiltShape(layer)
    try:
      described = keras_config.Plain(keras.layers.serialize(layer))
    except (TypeError, ValueError, NotImplementedError) as e:
      raise ValueError(
        f'the Keras layer {layer.name!r} has no description that text can '
        f'hold: {e}; give it a get_config() of plain values'
      ) from e
    if 'name' in described['config']:
      described['config']['name'] = _LAYER_NAME
    return cls.Params().Set(layer=described, input_shape=tuple(input_shape))

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.layer is None or p.input_shape is None:
      raise ValueError(
        f'{self.path}: set the params layer and input_shape, best by '
        'KerasLayer.FromLayer(layer, input_shape)'
      )
    self._keras, initializers = self._Build()
    self._seeds = _Without(self._keras.variables, self._keras.weights)
    self._CheckSupported()
    self.weight_names = tuple(keras_config.WeightNames(self._keras))
    for name, variable, initializer in zip(
      self.weight_names, self._keras.weights, initializers, strict=True
    ):
      weight = base_layer.WeightParams(
        tuple(variable.shape),
        _Init(initializer),
        dtype=tf.as_dtype(variable.dtype),
        collections=('l2',) if variable.name.endswith('kernel') else (),
      )
      self.CreateVariable(name, weight, trainable=variable.trainable)

  def _Build(self) -> tuple[keras.Layer, list[Any]]:
    """The Keras layer with variables that have no values.

    Returns:
      The layer, and the initializer of each of its weights.
    """
    p = self.params
    described = keras_config.WithPolicy(
      keras_config.Plain(p.layer), self._Policy()
    )
    # Initializers within others, as of the LSTM's bias, are out of reach: they
    # draw their seeds here, from Python's generator.
    generator_state = random.getstate()
    random.seed(weights.Hash64('keras', self.random_seed, self.path))
    # In a stateless scope Keras postpones initial values: to the end of the
    # next such scope. That is one in a graph which is never run.
    with tf.Graph().as_default():
      try:
        with keras.StatelessScope(initialize_variables=False):
          layer = keras.layers.deserialize(described)
          layer(keras.Input(p.input_shape, dtype=layer.compute_dtype))
        # Of a variable without a value, nothing public tells this.
        initializers = [v._initializer for v in layer.weights]
      except Exception as e:
        raise ValueError(
          f'{self.path}: Keras cannot build {described.get("class_name")} for '
          f'one input of shape {p.input_shape}: {e}'
        ) from e
      finally:
        random.setstate(generator_state)
        with keras.StatelessScope():
          pass
    return layer, initializers

  def _Policy(self) -> str:
    """The name of Keras' policy for the cell's dtypes."""
    dtypes = (self.dtype, self.fprop_dtype)
    if self.dtype == self.fprop_dtype:
      return self.dtype.name
    if dtypes not in _MIXED_POLICIES:
      raise ValueError(
        f'{self.path}: Keras has no policy for variables of {self.dtype.name} '
        f'and computation in {self.fprop_dtype.name}'
      )
    return _MIXED_POLICIES[dtypes]

  def _CheckSupported(self) -> None:
    if any(v.name != _SEED_NAME for v in self._seeds):
      raise ValueError(
        f'{self.path}: the Keras layer has state that is no weight: '
        f'{[v.path for v in self._seeds]}'
      )
    for variable in self._keras.weights:
      for what in ('regularizer', 'constraint'):
        if getattr(variable, what) is not None:
          raise ValueError(
            f'{self.path}: the weight {variable.path!r} has a {what}, which '
            'would have no effect; leave it out (train.learner has the '
            "project's own L2 regularizer)"
          )

  def _Spec(self, name: str) -> weights.VariableSpec:
    spec = super()._Spec(name)
    fields = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec)}
    return _KerasVariableSpec(**fields)

  def ThetaFrom(self, variables: NestedMap) -> NestedMap:
    """The values as they are: Keras casts them where its policy says so."""

    def _Own(name):
      with tf.device(variables[name].device):
        return tf.identity(variables[name])

    return NestedMap({name: _Own(name) for name in self.weight_names})

  def FProp(self, theta: NestedMap, inputs: tf.Tensor) -> Any:
    """Calls the Keras layer.

    Args:
      theta: the weights, by `weight_names`.
      inputs: [batch, ...], of the param input_shape.

    Returns:
      What the Keras layer returns.

    Raises:
      ValueError: for inputs of another shape; and in training, where the layer
        does what would get lost.
    """
    p = self.params
    if not inputs.shape[1:].is_compatible_with(list(p.input_shape)):
      raise ValueError(
        f'{self.path}: inputs {inputs.shape} are not '
        f'[batch, *input_shape={p.input_shape}]'
      )
    given = [
      (variable, theta[name])
      for name, variable in zip(
        self.weight_names, self._keras.weights, strict=True
      )
    ]
    given += [
      (v, self._Seed(f'generator_{i}')) for i, v in enumerate(self._seeds)
    ]
    scope = keras.StatelessScope(
      given, collect_losses=True, initialize_variables=False
    )
    before = dict(scope.state_mapping)
    try:
      with scope:
        outputs = self._keras(inputs, training=not self.do_eval)
    except Exception as e:
      if any(sign in str(e) for sign in _FOREIGN_VARIABLE):
        raise ValueError(
          f'{self.path}: the layer reads a variable that does not belong to '
          f"it, such as Keras' global seed generator; {_OWN_GENERATOR}"
        ) from e
      raise
    if not self.do_eval:
      self._CheckNothingIsLost(scope, before)
    return outputs

  def _Seed(self, name: str) -> tf.Tensor:
    """The state of a seed generator for this step and micro-batch; int64 [2].

    Keras counts up the second number for each draw of a generator, and uses
    the lower 32 bits of both. Those of StatelessSeed count micro-batches.
    """
    seed = tf.random.stateless_uniform(
      [2],
      self.StatelessSeed(name),
      minval=None,
      maxval=None,
      dtype=tf.int32,
    )
    return tf.cast(seed, tf.int64)

  def _CheckNothingIsLost(
    self, scope: keras.StatelessScope, before: dict[int, Any]
  ) -> None:
    changed = [
      name
      for name, v in zip(self.weight_names, self._keras.weights, strict=True)
      if scope.get_current_value(v) is not before[id(v)]
    ]
    if changed:
      raise ValueError(
        f'{self.path}: the forward pass changes {", ".join(changed)}, once '
        'for each micro-batch and again where it is re-materialized; use '
        "layers.norm.BatchNorm in place of Keras' BatchNormalization, which "
        'takes its moments from the whole mini-batch, or set trainable=False'
      )
    if scope.state_mapping.keys() - before.keys():
      raise ValueError(
        f'{self.path}: the forward pass changes variables that do not belong '
        f'to the layer; {_OWN_GENERATOR}'
      )
    if scope.losses:
      raise ValueError(
        f'{self.path}: the layer adds a loss (add_loss or an activity '
        'regularizer), which would be lost; a cell of the project adds one by '
        'AddAuxLoss'
      )


def _Init(initializer: Any) -> hyperparams.Params:
  if isinstance(initializer, keras.initializers.Initializer):
    initializer = keras_config.Plain(keras.initializers.serialize(initializer))
  p = hyperparams.Params()
  p.Define('method', 'keras', 'Keras initializes.')
  p.Define(
    'initializer',
    initializer,
    'What keras.initializers.serialize gives, or a function.',
  )
  return p


def _Without(some: list[Any], others: list[Any]) -> list[Any]:
  excluded = {id(x) for x in others}
  return [x for x in some if id(x) not in excluded]
