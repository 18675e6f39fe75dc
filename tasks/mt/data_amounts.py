"""Groups of languages by how much training data there is of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lingvo_gpipe import user_error

HIGH, MEDIUM, LOW = AMOUNTS = ('high', 'medium', 'low')


def Amounts(
  sizes: Mapping[str, int], limits: Sequence[int] = ()
) -> dict[str, str]:
  """Groups languages.

  Args:
    sizes: {language: training pairs}.
    limits: fewer pairs than the first number are LOW, as many as the second
      or more HIGH. Without limits, a third of the languages is in each group;
      languages with as many pairs are together, in the group of more.

  Returns:
    {language: one of AMOUNTS}, the languages with most data first.

  Raises:
    UserError: for limits that are not two, the smaller one first.
  """
  if limits and not (len(limits) == 2 and 0 < limits[0] <= limits[1]):
    raise user_error.UserError(
      f'--amounts={",".join(map(str, limits))} must be two numbers of pairs, '
      'the smaller one first, such as 500,700'
    )
  names = sorted(sizes, key=lambda x: (-sizes[x], x))
  if not limits and names:
    # The sizes of the last languages of the upper third and of the next one.
    high, low = (sizes[names[-(-len(names) * i // 3) - 1]] for i in (1, 2))
    limits = (low, high)
  return {x: _Amount(sizes[x], *limits) for x in names}


def _Amount(size: int, low: int, high: int) -> str:
  return LOW if size < low else MEDIUM if size < high else HIGH
