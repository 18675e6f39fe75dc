"""How many micro-batches a mini-batch is split into."""

from __future__ import annotations

from collections.abc import Sequence

# The paper finds the bubble negligible from here on (M >= 4 K, section 2.3).
MICRO_BATCHES_PER_PARTITION = 4

# Divisors named in an error message; those nearest to what was asked for.
_MAX_CHOICES = 16


def ChooseNumMicroBatches(
  batch_size: int,
  num_partitions: int,
  num_micro_batches: int | None = None,
  micro_batch_size: int | None = None,
  *,
  num_replicas: int = 1,
  padded: bool = False,
) -> int:
  """M for mini-batches of `batch_size`.

  Replicas share a mini-batch, and each splits its part into M. In what follows
  N is that part.

  Without a wish it is 4 K, as the paper advises; where that does not divide the
  mini-batch, the divisor nearest to 4 K, of two equally near ones the larger
  (it has the smaller bubble).

  Args:
    batch_size: N, examples of the mini-batch.
    num_partitions: K.
    num_micro_batches: the wish for M, or None.
    micro_batch_size: the wish for N / M, or None.
    num_replicas: R.
    padded: whether the last micro-batches may be filled up, so that neither R
      nor a wish need divide the mini-batch.

  Returns:
    M, a divisor of N unless `padded`.

  Raises:
    ValueError: for a wish that N cannot fulfil.
  """
  if batch_size < 1:
    raise ValueError(f'a mini-batch of {batch_size} examples cannot be split')
  whole, batch_size = batch_size, -(-batch_size // num_replicas)
  part = f'mini-batch {batch_size}'
  if num_replicas > 1:
    part = (
      f'{part} of each of num_replicas={num_replicas} (--worker_replicas; '
      f'{whole} in all)'
    )
    if whole % num_replicas and not padded:
      raise ValueError(
        f'mini-batch {whole} is not divisible into num_replicas={num_replicas} '
        '(--worker_replicas); set pad_batches=True, make the batch size of the '
        f'input a multiple of {num_replicas}, or use one of '
        f'{_Choices(whole, num_replicas)} replicas'
      )
  for option, value in (
    ('num_micro_batches', num_micro_batches),
    ('micro_batch_size', micro_batch_size),
  ):
    if value is None:
      continue
    if value < 1:
      raise ValueError(f'{option}={value} must be 1 or more')
    choices = _Choices(batch_size, value)
    if value > batch_size:
      raise ValueError(
        f'{option}={value} is larger than the {part}; use one of {choices}'
      )
    if batch_size % value and not padded:
      raise ValueError(
        f'{part} is not divisible into {option}={value}; set pad_batches=True, '
        f'or use one of {choices}'
      )
  if num_micro_batches is not None and micro_batch_size is not None:
    if num_micro_batches != -(-batch_size // micro_batch_size):
      raise ValueError(
        f'num_micro_batches={num_micro_batches} of '
        f'micro_batch_size={micro_batch_size} do not make the {part}; give '
        'only one of the two'
      )
  if num_micro_batches is not None:
    return num_micro_batches
  if micro_batch_size is not None:
    return -(-batch_size // micro_batch_size)
  target = MICRO_BATCHES_PER_PARTITION * num_partitions
  return NearestNumMicroBatches(batch_size, target)


def NearestNumMicroBatches(batch_size: int, wish: int) -> int:
  """M for a mini-batch that may have another size than the one of `wish`.

  For evaluation, where M changes no result.

  Args:
    batch_size: N, examples of the mini-batch, 1 or more.
    wish: M of the training mini-batch.

  Returns:
    The divisor of N nearest to `wish`, of two equally near ones the larger.
  """
  return _Nearest(Divisors(batch_size), wish)[0]


def Divisors(number: int) -> list[int]:
  """All divisors of a positive number, in ascending order."""
  small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
  return sorted({*small, *(number // d for d in small)})


def _Nearest(numbers: Sequence[int], target: int) -> list[int]:
  return sorted(numbers, key=lambda n: (abs(n - target), -n))


def _Choices(batch_size: int, wish: int) -> str:
  nearest = _Nearest(Divisors(batch_size), wish)[:_MAX_CHOICES]
  return ', '.join(str(d) for d in sorted(nearest))
