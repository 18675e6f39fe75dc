"""What one registers: a task and its datasets, as a class of params.

@registry.RegisterSingleTaskModel
class Digits(base_model_params.SingleTaskModelParams):

  def Train(self):
    return digits_input.DigitsInput.Params().Set(split='train', training=True)

  def Test(self):
    return digits_input.DigitsInput.Params().Set(split='test')

  def Task(self):
    p = base_task.BaseTask.Params().Set(name='digits')
    p.net.cells = amoebanet.AmoebaNetCells(...)
    return p
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lingvo_gpipe import hyperparams

_STANDARD_DATASETS = ('Train', 'Dev', 'Test')
_MethodT = TypeVar('_MethodT', bound=Callable[..., Any])


class DatasetError(ValueError):
  """A model has no dataset of this name."""


def Dataset(method: _MethodT) -> _MethodT:
  """Marks a method besides Train, Dev and Test as one that gives a dataset."""
  method.is_dataset = True
  return method


class SingleTaskModelParams:
  """The base class of registered models; one instance may be made at no cost.

  Its datasets are those of the methods Train, Dev and Test that a subclass
  defines and every method marked with `@Dataset`. They take no arguments and
  return the params of an input generator.
  """

  def Train(self) -> hyperparams.InstantiableParams:
    """Input params of the training data."""
    raise NotImplementedError(f'{type(self).__name__}.Train')

  def Dev(self) -> hyperparams.InstantiableParams:
    """Input params of the data that training decisions may look at."""
    raise NotImplementedError(f'{type(self).__name__}.Dev')

  def Test(self) -> hyperparams.InstantiableParams:
    """Input params of the data that results are reported for."""
    raise NotImplementedError(f'{type(self).__name__}.Test')

  def Task(self) -> hyperparams.InstantiableParams:
    """Params of the task, the root of the model."""
    raise NotImplementedError(
      f'{type(self).__name__}.Task: define it to return the params of the task'
    )

  def Complete(self, params: hyperparams.InstantiableParams) -> None:
    """Sets what depends on other params, after flags have changed those.

    A model of a folder of pictures learns here how many classes it has. Called
    by the trainer, once for each dataset; the default does nothing.

    Args:
      params: of the task, with the input params of a dataset; to be changed.
    """

  def Model(self) -> hyperparams.InstantiableParams:
    """Params of the whole model: a copy of Task()'s, checked."""
    return self._Checked('Task').Copy()

  def GetDatasetNames(self) -> list[str]:
    """The names of its datasets: Train, Dev, Test, then others by name."""
    others = [
      name
      for name in dir(type(self))
      if name not in _STANDARD_DATASETS and self._IsMarked(name)
    ]
    base = SingleTaskModelParams
    return [
      name
      for name in _STANDARD_DATASETS
      if getattr(type(self), name) is not getattr(base, name)
    ] + sorted(others)

  def _IsMarked(self, name: str) -> bool:
    # A subclass that overrides a dataset need not mark it again.
    return any(
      getattr(vars(cls).get(name), 'is_dataset', False)
      for cls in type(self).__mro__
    )

  def GetDatasetParams(self, name: str) -> hyperparams.InstantiableParams:
    """The input params of one dataset.

    Args:
      name: one of GetDatasetNames().

    Returns:
      A copy of the params.

    Raises:
      DatasetError: for another name.
      TypeError: where the method returns something else.
    """
    names = self.GetDatasetNames()
    if name in names:
      return self._Checked(name).Copy()
    message = f'{type(self).__name__} has no dataset {name!r}'
    message += f'; it has: {", ".join(names) or "none"}'
    method = getattr(type(self), name, None)
    if name in _STANDARD_DATASETS:
      message += f'; define the method {name} to add it'
    elif callable(method) and name not in dir(SingleTaskModelParams):
      message += f'; mark the method {name} with @base_model_params.Dataset'
    raise DatasetError(message)

  def _Checked(self, method: str) -> hyperparams.Params:
    params = getattr(self, method)()
    if not isinstance(params, hyperparams.Params):
      raise TypeError(
        f'{type(self).__name__}.{method}() must return Params, such as '
        f'SomeClass.Params(), not {type(params).__name__}'
      )
    return params


class SplitModelParams(SingleTaskModelParams):
  """A model whose datasets are the splits of one source of data."""

  def Input(self, split: str) -> hyperparams.InstantiableParams:
    """Input params of a split, as it is evaluated.

    Args:
      split: 'train', 'dev' or 'test'.

    Returns:
      The params.
    """
    raise NotImplementedError(f'{type(self).__name__}.Input')

  def Train(self) -> hyperparams.InstantiableParams:
    return self.Input('train').Set(training=True)

  def Dev(self) -> hyperparams.InstantiableParams:
    return self.Input('dev')

  def Test(self) -> hyperparams.InstantiableParams:
    return self.Input('test')
