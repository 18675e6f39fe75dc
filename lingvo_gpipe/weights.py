"""Declaring weights: shape, dtype and initialisation, without any memory.

A layer declares `WeightParams`; its path, its dtype and its seed follow from
where the layer stands in the model, which gives a `VariableSpec`. Specs are
what gets counted, partitioned and planned. `VariableSpec.Create()` is the only
place of the framework that makes a variable of a model.

Initial values depend on the run's seed and the variable's path only: a model
starts from the same numbers whatever its partitions and devices.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math

import tensorflow as tf

from lingvo_gpipe import hyperparams

# The standard deviation of a unit normal truncated at two of its own.
_TRUNCATED_STDDEV = 0.87962566103423978


def Hash64(*parts: object) -> int:
  """A stable hash of `parts` in [0, 2**63), equal in every process."""
  text = '\0'.join(str(part) for part in parts)
  digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
  return int.from_bytes(digest, 'little') >> 1


def AtLeastFloat32(dtype: tf.DType) -> tf.DType:
  """float32 in place of a half-precision floating dtype, else `dtype`."""
  return tf.float32 if dtype.is_floating and dtype.size < 4 else dtype


class WeightInit:
  """Initialisers as Params, so that they print, compare and parse as text."""

  @staticmethod
  def _Params(
    method: str, scale: float, mode: str = '', distribution: str = ''
  ):
    p = hyperparams.Params()
    p.Define('method', method, 'Name of the initialiser.')
    p.Define('scale', scale, 'Its value, bound, deviation or variance scale.')
    p.Define('mode', mode, 'variance_scaling: fan_in, fan_out or fan_avg.')
    p.Define(
      'distribution',
      distribution,
      'variance_scaling: truncated_normal, normal or uniform.',
    )
    return p

  @staticmethod
  def Constant(value: float = 0.0) -> hyperparams.Params:
    """Every element is `value`."""
    return WeightInit._Params('constant', value)

  @staticmethod
  def Gaussian(stddev: float = 1.0) -> hyperparams.Params:
    """Normal with mean 0."""
    return WeightInit._Params('gaussian', stddev)

  @staticmethod
  def TruncatedGaussian(stddev: float = 1.0) -> hyperparams.Params:
    """Normal with mean 0, redrawn beyond two standard deviations."""
    return WeightInit._Params('truncated_gaussian', stddev)

  @staticmethod
  def Uniform(scale: float = 1.0) -> hyperparams.Params:
    """Uniform in [-scale, scale)."""
    return WeightInit._Params('uniform', scale)

  @staticmethod
  def VarianceScaling(
    scale: float = 1.0,
    mode: str = 'fan_in',
    distribution: str = 'truncated_normal',
  ) -> hyperparams.Params:
    """Variance scale / fan, He et al. (arXiv 1502.01852) and others.

    Args:
      scale: numerator of the variance.
      mode: 'fan_in', 'fan_out' or 'fan_avg', the denominator.
      distribution: 'truncated_normal', 'normal' or 'uniform'.
    """
    if mode not in ('fan_in', 'fan_out', 'fan_avg'):
      raise ValueError(f'mode {mode!r} is not fan_in, fan_out or fan_avg')
    if distribution not in ('truncated_normal', 'normal', 'uniform'):
      raise ValueError(
        f'distribution {distribution!r} is not truncated_normal, normal or '
        'uniform'
      )
    return WeightInit._Params('variance_scaling', scale, mode, distribution)

  @staticmethod
  def GlorotUniform() -> hyperparams.Params:
    """Glorot and Bengio (2010): uniform, variance 2 / (fan_in + fan_out)."""
    return WeightInit.VarianceScaling(1.0, 'fan_avg', 'uniform')


@dataclasses.dataclass(frozen=True)
class WeightParams:
  """What a layer says of one of its weights.

  Attributes:
    shape: static shape.
    init: a WeightInit; None takes the layer's `params_init`.
    dtype: None takes the layer's dtype.
    collections: free tags, for example 'l2' for weights that decay.
  """

  shape: tuple[int, ...]
  init: hyperparams.Params | None = None
  dtype: tf.DType | None = None
  collections: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class VariableSpec:
  """A variable of a model before it exists.

  Attributes:
    path: its name in the model, '/' between layers; the name in checkpoints.
    shape: static shape.
    dtype: of the stored value.
    init: a WeightInit.
    trainable: whether gradients are computed for it.
    collections: free tags of the layer's declaration.
    seed: of the run.
  """

  path: str
  shape: tuple[int, ...]
  dtype: tf.DType
  init: hyperparams.Params
  trainable: bool
  collections: tuple[str, ...]
  seed: int

  @property
  def size(self) -> int:
    """Number of elements."""
    return math.prod(self.shape)

  @property
  def num_bytes(self) -> int:
    """Bytes of the stored value."""
    return self.size * self.dtype.size

  def Create(self) -> tf.Variable:
    """Makes the variable on the current device."""
    return tf.Variable(
      lambda: InitialValue(self),
      trainable=self.trainable,
      name=self.path,
      shape=self.shape,
      dtype=self.dtype,
    )


def _Fans(shape: tuple[int, ...]) -> tuple[float, float]:
  """(fan_in, fan_out); leading dimensions are the receptive field."""
  if len(shape) < 2:
    fan = float(shape[0]) if shape else 1.0
    return fan, fan
  field = math.prod(shape[:-2])
  return float(shape[-2] * field), float(shape[-1] * field)


def InitialValue(spec: VariableSpec) -> tf.Tensor:
  """The initial value of a variable, a function of its path and the seed."""
  init, scale = spec.init, spec.init.scale
  kwargs = {
    'shape': spec.shape,
    'seed': (Hash64('init', spec.seed, spec.path), 0),
    'dtype': spec.dtype,
  }
  distribution = init.method
  if init.method == 'constant':
    return tf.fill(spec.shape, tf.constant(scale, spec.dtype))
  if init.method == 'variance_scaling':
    fan_in, fan_out = _Fans(spec.shape)
    fan = {
      'fan_in': fan_in,
      'fan_out': fan_out,
      'fan_avg': (fan_in + fan_out) / 2,
    }[init.mode]
    variance = scale / max(1.0, fan)
    distribution, scale = {
      'normal': ('gaussian', math.sqrt(variance)),
      'truncated_normal': (
        'truncated_gaussian',
        math.sqrt(variance) / _TRUNCATED_STDDEV,
      ),
      'uniform': ('uniform', math.sqrt(3 * variance)),
    }[init.distribution]
  if distribution == 'gaussian':
    return tf.random.stateless_normal(stddev=scale, **kwargs)
  if distribution == 'truncated_gaussian':
    return tf.random.stateless_truncated_normal(stddev=scale, **kwargs)
  if distribution == 'uniform':
    return tf.random.stateless_uniform(minval=-scale, maxval=scale, **kwargs)
  raise ValueError(
    f'{spec.path}: no initialiser is called {init.method!r}; use one of the '
    'constructors of WeightInit'
  )
