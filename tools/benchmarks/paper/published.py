"""The figures of the GPipe paper (Huang et al., arXiv 1811.06965v5)."""

from __future__ import annotations

from typing import NamedTuple


class ModelSize(NamedTuple):
  """A column of Table 1.

  Attributes:
    setting: 'Naive-1' or 'Pipeline-K'.
    devices: K.
    size: L of Transformer-L, or (L, D) of AmoebaNet-D.
    parameters: as printed.
    parameter_memory: bytes, as printed in decimal or binary units.
    activation_memory: likewise.
  """

  setting: str
  devices: int
  size: int | tuple[int, int]
  parameters: float
  parameter_memory: float
  activation_memory: float


_GB = 10**9
_GIB = 2**30

# 8 GB an accelerator, pictures of 224 x 224, mini-batches of 128.
AMOEBANET_SIZES = (
  ModelSize('Naive-1', 1, (18, 208), 82e6, 1.05 * _GB, 6.26 * _GB),
  ModelSize('Pipeline-1', 1, (18, 416), 318e6, 3.8 * _GB, 3.46 * _GB),
  ModelSize('Pipeline-2', 2, (18, 544), 542e6, 6.45 * _GB, 8.11 * _GB),
  ModelSize('Pipeline-4', 4, (36, 544), 1.05e9, 12.53 * _GB, 15.21 * _GB),
  ModelSize('Pipeline-8', 8, (72, 512), 1.8e9, 24.62 * _GB, 26.24 * _GB),
)

# 16 GB a core, 32 sequences of 1024 tokens. The two memories of Naive-1 are
# printed the other way round, which contradicts 12 bytes for each parameter.
TRANSFORMER_SIZES = (
  ModelSize('Naive-1', 1, 3, 282.2e6, 3.15 * _GIB, 11.7 * _GIB),
  ModelSize('Pipeline-1', 1, 13, 785.8e6, 8.8 * _GIB, 6.4 * _GIB),
  ModelSize('Pipeline-8', 8, 103, 5.3e9, 59.5 * _GIB, 50.9 * _GIB),
  ModelSize('Pipeline-32', 32, 415, 21.0e9, 235.1 * _GIB, 199.9 * _GIB),
  ModelSize('Pipeline-128', 128, 1663, 83.9e9, 937.9 * _GIB, 796.1 * _GIB),
)

# Table 2: {model: {(K, M): throughput}}, where K = 2, M = 1 is 1. The size of
# mini-batches was not the same everywhere.
AMOEBANET = 'AmoebaNet-D (18, 256)'
TRANSFORMER = 'Transformer-48'
THROUGHPUT = {
  AMOEBANET: {
    **{(2, 1): 1.0, (4, 1): 1.13, (8, 1): 1.38},
    **{(2, 4): 1.07, (4, 4): 1.26, (8, 4): 1.72},
    **{(2, 32): 1.21, (4, 32): 1.84, (8, 32): 3.48},
  },
  TRANSFORMER: {
    **{(2, 1): 1.0, (4, 1): 1.07, (8, 1): 1.3},
    **{(2, 4): 1.7, (4, 4): 3.2, (8, 4): 4.8},
    **{(2, 32): 1.8, (4, 32): 3.4, (8, 32): 6.3},
  },
}

# Table 3: {model: {K: throughput}} with M = 32 on GPUs without fast links,
# where K = 2 is 1.
SLOW_LINK_THROUGHPUT = {
  'AmoebaNet-D (18, 128)': {2: 1.0, 4: 1.7, 8: 2.7},
  'Transformer-24': {2: 1.0, 4: 1.8, 8: 3.3},
}

# Shares of a step; only in the version of NeurIPS 2019, with two partitions.
# The update has no number there and is what the others leave.
BREAKDOWN = {
  'computation': 0.656,
  'recomputation': 0.225,
  'bubble': 0.041,
  'load imbalance': 0.032,
  'setup': 0.029,
  'weight update': 0.017,
}


class BatchSize(NamedTuple):
  """A column of Table 5.

  Attributes:
    tokens: of a mini-batch.
    bleu: German to English.
    nll: negative log-likelihood a token, in nats.
  """

  tokens: float
  bleu: float
  nll: float


BATCH_SIZES = (
  BatchSize(260e3, 30.92, 2.58),
  BatchSize(1e6, 31.86, 2.51),
  BatchSize(4e6, 32.71, 2.46),
)
