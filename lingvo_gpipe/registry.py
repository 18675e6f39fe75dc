"""Models by name: `--model=image.digits.AmoebaNetDigits`.

A model's name is the dotted path of its class, without `params.` in front where
its module is in that package. Modules of any package can register: the name
says what to import.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from lingvo_gpipe import base_model_params, hyperparams
from lingvo_gpipe.config import spelling

_PARAMS_PACKAGE = 'params'
_ClassT = TypeVar(
  '_ClassT', bound=type[base_model_params.SingleTaskModelParams]
)


class UnknownModelError(ValueError, LookupError):
  """No model is registered by this name."""


class ModelInfo(NamedTuple):
  """A registered model.

  Attributes:
    name: in the registry.
    cls: the class.
    source: where it is defined, 'file:line'.
    summary: the first line of its docstring.
  """

  name: str
  cls: type[base_model_params.SingleTaskModelParams]
  source: str
  summary: str


_models: dict[str, ModelInfo] = {}


def _Normalized(name: str) -> str:
  return name.removeprefix(f'{_PARAMS_PACKAGE}.')


def RegisterSingleTaskModel(cls: _ClassT) -> _ClassT:
  """Registers a class of model params; use it as a decorator.

  Args:
    cls: a subclass of SingleTaskModelParams.

  Returns:
    cls.

  Raises:
    TypeError: for another class.
    ValueError: where another class has the name.
  """
  base = base_model_params.SingleTaskModelParams
  if not (isinstance(cls, type) and issubclass(cls, base)):
    raise TypeError(
      f'{cls!r} cannot be registered: it is not a subclass of '
      'base_model_params.SingleTaskModelParams'
    )
  caller = sys._getframe(1)
  source = f'{caller.f_code.co_filename}:{caller.f_lineno}'
  name = _Normalized(f'{cls.__module__}.{cls.__name__}')
  known = _models.get(name)
  if known and known.source != source and _IsFile(known.source):
    raise ValueError(
      f'two models are called {name!r}: at {known.source} and at {source}; '
      'rename one of them'
    )
  # Of the class's own docstring, not that of a base class.
  doc = (vars(cls).get('__doc__') or '').strip()
  _models[name] = ModelInfo(name, cls, source, doc.partition('\n')[0])
  return cls


def _IsFile(source: str) -> bool:
  """False for code typed into an interpreter, which may be typed again."""
  return os.path.exists(source.rpartition(':')[0])


def ImportModules(modules: Iterable[str]) -> None:
  """Imports modules that register models, for `--import`.

  Args:
    modules: dotted names; the current directory is searched last.

  Raises:
    ImportError: where one is not found, or fails to import something.
  """
  for module in modules:
    if not _Import(module):
      raise ModuleNotFoundError(
        f'no module {module!r}, neither installed nor below '
        f'{", ".join(_OwnFolders())}; check --import and PYTHONPATH',
        name=module,
      )


def ImportParams(name: str) -> bool:
  """Imports the one module that registers a model, if it is needed.

  Args:
    name: of the model. `a.b.Model` is looked for in the module `params.a.b`,
      then in `a.b`.

  Returns:
    Whether a model of this name is registered now.

  Raises:
    Whatever the module raises: a module that exists but fails is no unknown
    model.
  """
  key = _Normalized(name)
  if key in _models:
    return True
  module = key.rpartition('.')[0]
  if all(part.isidentifier() for part in module.split('.')):
    for candidate in (f'{_PARAMS_PACKAGE}.{module}', module):
      if _Import(candidate) and key in _models:
        return True
  return False


def _OwnFolders() -> list[str]:
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  folders = [os.getcwd(), os.environ.get('BUILD_WORKING_DIRECTORY')]
  return list(dict.fromkeys(filter(None, folders)))


def _Import(module: str) -> bool:
  """Imports a module; False where there is none of this name."""
  for folder in _OwnFolders():
    if folder not in sys.path:
      sys.path.append(folder)
  importlib.invalidate_caches()
  try:
    importlib.import_module(module)
  except ModuleNotFoundError as e:
    missing = e.name or ''
    if module == missing or module.startswith(f'{missing}.'):
      return False
    raise  # The module is there and lacks something.
  return True


def GetClass(name: str) -> type[base_model_params.SingleTaskModelParams]:
  """The class of a model, imported if need be.

  Args:
    name: of the model.

  Returns:
    The class.

  Raises:
    UnknownModelError: where there is none; the message has near names.
  """
  if ImportParams(name):
    return _models[_Normalized(name)].cls
  failures = _ImportAll()
  key = _Normalized(name)
  message = f'no model is called {name!r}'
  message += spelling.Hint(key, AllNames(), 'models')
  module = key.rpartition('.')[0]
  imported = {module, f'{_PARAMS_PACKAGE}.{module}'} & set(sys.modules)
  registers = any(name.startswith(f'{module}.') for name in AllNames())
  if imported and not registers:
    message += (
      f' (the module {module} exists: its models need the decorator '
      '@registry.RegisterSingleTaskModel)'
    )
  if failures:
    broken = '; '.join(f'{m}: {e}' for m, e in failures.items())
    message += f' (modules that could not be imported: {broken})'
  raise UnknownModelError(message)


def GetParams(
  name: str, dataset: str | None = None
) -> hyperparams.InstantiableParams:
  """The params of a model.

  Args:
    name: of the model.
    dataset: 'Train', 'Dev', 'Test' or another of its datasets, whose input
      params become the param `input`; None leaves that as it is.

  Returns:
    A fresh copy, which has the source of the model, 'file:line', in its param
    `model` if it defines one.

  Raises:
    UnknownModelError: for an unknown model.
    DatasetError: for an unknown dataset.
  """
  model = GetClass(name)()
  params = model.Model()
  if dataset is not None:
    params.input = model.GetDatasetParams(dataset)
  if 'model' in params:
    params.model = f'{_Normalized(name)} ({GetSource(name)})'
  return params


def GetSource(name: str) -> str:
  """Where the class of a registered model is defined, 'file:line'."""
  GetClass(name)
  return _models[_Normalized(name)].source


def AllNames() -> list[str]:
  """The names registered so far, sorted; imports nothing."""
  return sorted(_models)


def ListModels() -> list[ModelInfo]:
  """All models registered or to be found in the package `params`, by name."""
  _ImportAll()
  return [_models[name] for name in AllNames()]


def _ImportAll() -> dict[str, Exception]:
  """Imports all of the package `params`; returns the errors by module."""
  failures: dict[str, Exception] = {}
  if not _Import(_PARAMS_PACKAGE):
    return failures
  folders = list(sys.modules[_PARAMS_PACKAGE].__path__)
  # Not walk_packages, which imports packages without catching their errors.
  pending = [(folders, f'{_PARAMS_PACKAGE}.')]
  while pending:
    folders, prefix = pending.pop()
    for info in pkgutil.iter_modules(folders, prefix):
      if info.name.endswith('_test'):
        continue
      try:
        module = importlib.import_module(info.name)
      except Exception as e:  # Its author's; the others still count.
        failures[info.name] = e
        continue
      if info.ispkg:
        pending.append((list(module.__path__), f'{info.name}.'))
  return failures
