"""The flags that all tools share: the sizes of the stack, and what is written.

Apart from what they start, so that --help needs no TensorFlow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from absl import flags

from tools.benchmarks import stack_sizes

_PRESET = flags.DEFINE_enum(
  'preset',
  'standard',
  sorted(stack_sizes.PRESETS),
  'Sizes of the Transformer stack, which the flags below change one by one. '
  'standard: 8 blocks, 256 wide, mini-batch 32 of 64 tokens. wide_batch: '
  'the same with a mini-batch of 256, whose activations are far larger than '
  'the weights. wide_model: 512 wide, whose weights are far larger than a '
  'worker without work. small: for trying out the tool.',
)
_SIZES = {
  'layers': 'Number of Transformer blocks.',
  'model_dim': 'Width of the stream of tokens.',
  'ffn_dim': 'Width of the hidden layer of the feed-forward networks.',
  'heads': 'Attention heads; must divide --model_dim.',
  'tokens': 'Tokens in an example.',
  'batch': 'Examples in a mini-batch.',
}
_SIZE_FLAGS = {
  name: flags.DEFINE_integer(
    name, None, f'{text} Default: what the preset says.', lower_bound=1
  )
  for name, text in _SIZES.items()
}
OUTPUT = flags.DEFINE_string(
  'output', '', 'File to write the results to as JSON. Empty: none.'
)


def Sizes() -> stack_sizes.Sizes:
  """The sizes that the flags ask for.

  Raises:
    ValueError: where they do not fit each other.
  """
  given = {
    name: flag.value
    for name, flag in _SIZE_FLAGS.items()
    if flag.value is not None
  }
  return dataclasses.replace(stack_sizes.PRESETS[_PRESET.value], **given)


def Integers(name: str, values: Sequence[str]) -> list[int]:
  """The numbers of a flag that takes a list of them.

  Args:
    name: of the flag.
    values: its value.

  Returns:
    The numbers, in order, each once.

  Raises:
    ValueError: where one is no number above 0.
  """
  numbers = []
  for value in values:
    if not value.strip().isdecimal() or int(value) < 1:
      raise ValueError(
        f'--{name}={",".join(values)}: {value!r} must be a number of 1 or more'
      )
    numbers.append(int(value))
  return list(dict.fromkeys(numbers))
