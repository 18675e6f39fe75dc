"""The cells that evolution found, as data: AmoebaNet-D and AmoebaNet-B.

A cell builds states h0, h1, h2, ... of F channels each:

  h0   the cell's input, projected to F channels
  h1   the skip input (what the previous cell received), matched to h0
  h2+i block i: op(left) + op(right), each of an earlier state

Its output joins the states that it names in `concat` along the channels.

Real et al., Regularized Evolution for Image Classifier Architecture Search
(arXiv 1802.01548); the tables are those of the implementation that the GPipe
paper's authors published for Cloud TPUs, whose parameter counts are the
paper's.
"""

from __future__ import annotations

import dataclasses

# Operations, by the names that tables use. Those in amoebanet_ops.py compute.
NONE = 'none'
CONV_1X1 = 'conv_1x1'
CONV_3X3 = 'conv_3x3'
CONV_1X7_7X1 = 'conv_1x7_7x1'
SEPARABLE_3X3_2 = 'separable_3x3_2'
DILATED_2_SEPARABLE_5X5_2 = 'dilated_2_separable_5x5_2'
MAX_POOL_2X2 = 'max_pool_2x2'
MAX_POOL_3X3 = 'max_pool_3x3'
AVG_POOL_3X3 = 'avg_pool_3x3'

OPERATIONS = (
  NONE,
  CONV_1X1,
  CONV_3X3,
  CONV_1X7_7X1,
  SEPARABLE_3X3_2,
  DILATED_2_SEPARABLE_5X5_2,
  MAX_POOL_2X2,
  MAX_POOL_3X3,
  AVG_POOL_3X3,
)

# (state, operation)
Branch = tuple[int, str]


@dataclasses.dataclass(frozen=True)
class CellGenotype:
  """One kind of cell.

  Attributes:
    blocks: the (left, right) branches of h2, h3, ...
    concat: the states of the output.
  """

  blocks: tuple[tuple[Branch, Branch], ...]
  concat: tuple[int, ...]

  def __post_init__(self):
    for i, block in enumerate(self.blocks):
      for state, operation in block:
        if not 0 <= state < i + 2:
          raise ValueError(
            f'block {i} makes h{i + 2} and reads h{state}, which comes later'
          )
        if operation not in OPERATIONS:
          raise ValueError(
            f'block {i}: operation {operation!r} is none of '
            f'{", ".join(OPERATIONS)}'
          )
    if not all(0 <= state < self.num_states for state in self.concat):
      raise ValueError(
        f'concat={self.concat} names states beyond h{self.num_states - 1}'
      )

  @property
  def num_states(self) -> int:
    """The number of states, h0 and h1 included."""
    return 2 + len(self.blocks)


@dataclasses.dataclass(frozen=True)
class Genotype:
  """An architecture: its normal cell and its reduction cell.

  Attributes:
    normal: keeps the image's size.
    reduction: halves it; the operations on h0 and h1 have stride 2.
  """

  normal: CellGenotype
  reduction: CellGenotype

  def Cell(self, reduction: bool) -> CellGenotype:
    """The reduction cell or the normal one."""
    return self.reduction if reduction else self.normal


AMOEBANET_D = Genotype(
  normal=CellGenotype(
    blocks=(
      ((1, CONV_1X1), (1, MAX_POOL_3X3)),
      ((1, NONE), (0, CONV_1X7_7X1)),
      ((0, CONV_1X1), (0, CONV_1X7_7X1)),
      ((2, MAX_POOL_3X3), (2, NONE)),
      ((1, AVG_POOL_3X3), (5, CONV_1X1)),
    ),
    concat=(0, 3, 4, 6),
  ),
  reduction=CellGenotype(
    blocks=(
      ((0, MAX_POOL_2X2), (0, MAX_POOL_3X3)),
      ((2, NONE), (1, CONV_3X3)),
      ((2, CONV_1X7_7X1), (2, MAX_POOL_3X3)),
      ((3, NONE), (1, MAX_POOL_2X2)),
      ((2, AVG_POOL_3X3), (3, CONV_1X1)),
    ),
    concat=(4, 5, 6),
  ),
)

AMOEBANET_B = Genotype(
  normal=CellGenotype(
    blocks=(
      ((1, CONV_1X1), (1, MAX_POOL_3X3)),
      ((1, NONE), (0, SEPARABLE_3X3_2)),
      ((1, CONV_1X1), (0, SEPARABLE_3X3_2)),
      ((2, CONV_1X1), (2, NONE)),
      ((1, AVG_POOL_3X3), (5, CONV_1X1)),
    ),
    concat=(0, 3, 4, 6),
  ),
  reduction=CellGenotype(
    blocks=(
      ((0, MAX_POOL_2X2), (0, MAX_POOL_3X3)),
      ((2, NONE), (1, CONV_3X3)),
      ((2, DILATED_2_SEPARABLE_5X5_2), (2, MAX_POOL_3X3)),
      ((3, NONE), (1, SEPARABLE_3X3_2)),
      ((4, AVG_POOL_3X3), (3, CONV_1X1)),
    ),
    concat=(5, 6),
  ),
)

# What the param `genotype` of a cell may name; add your own here.
GENOTYPES: dict[str, Genotype] = {
  'amoebanet_d': AMOEBANET_D,
  'amoebanet_b': AMOEBANET_B,
}


def Get(name: str) -> Genotype:
  """The genotype called `name`; ValueError names those that there are."""
  if name not in GENOTYPES:
    raise ValueError(
      f'genotype {name!r} is not known; genotypes.GENOTYPES has '
      f'{", ".join(sorted(GENOTYPES))}'
    )
  return GENOTYPES[name]
