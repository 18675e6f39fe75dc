"""Flags that set a param wherever the inputs have it, such as --data_dir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lingvo_gpipe import hyperparams, user_error
from lingvo_gpipe.config import key_path
from lingvo_gpipe.jobs import flags


def Wishes(options: flags.Options) -> dict[str, Any]:
  """{name of a param: its value}, as far as the flags say."""
  wishes = {'data_dir': options.data_dir, 'download': options.download}
  return {name: value for name, value in wishes.items() if value}


def Find(params: hyperparams.Params, name: str, kind: type) -> list[str]:
  """The paths of all params of a name, at any depth.

  Args:
    params: of an input.
    name: of the params.
    kind: of their values; None counts too.

  Returns:
    The paths.
  """
  paths = []

  def _Visit(path: str, value: Any) -> None:
    if path and key_path.Parse(path)[-1] == name:
      if value is None or isinstance(value, kind):
        paths.append(path)

  params.Visit(_Visit)
  return paths


def Apply(
  options: flags.Options, params: hyperparams.Params, *, empty_only: bool
) -> None:
  """Sets what the flags say in the params of one input.

  Args:
    options: the flags.
    params: of the input; changed.
    empty_only: leaves params alone that have a value already: '', None and
      False are none.
  """
  for name, value in Wishes(options).items():
    for path in Find(params, name, type(value)):
      if not (empty_only and params.Get(path)):
        params.SetPath(path, value)


def CheckUsed(
  options: flags.Options, inputs: Sequence[hyperparams.Params]
) -> None:
  """Checks that each flag has set something, and nothing has undone it.

  Args:
    options: the flags.
    inputs: params of all inputs of the model, in the end.

  Raises:
    UserError: for the first flag that is without effect.
  """
  for name, value in Wishes(options).items():
    flag = f'--{name}' if value is True else f'--{name}={value}'
    found = [
      (path, params.Get(path))
      for params in inputs
      for path in Find(params, name, type(value))
    ]
    if not found:
      kind = 'text' if isinstance(value, str) else 'True or False'
      raise user_error.UserError(
        f'{flag} has nothing to set: no input of --model={options.model} has a '
        f'param called {name} ({kind}); --mode=inspect_params shows what they '
        'have'
      )
    for path, other in found:
      if other != value:
        raise user_error.UserError(
          f'{flag} and --model_params_override set input.{path} to different '
          'values; use one of the two'
        )
