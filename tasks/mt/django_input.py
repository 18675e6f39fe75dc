"""Django's own catalogues as data that is there at once.

94 languages, read where the package is installed and prepared on first use, as
`python -m tools.mt.prepare --source=django` does, into the user's folder of
caches.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os

from lingvo_gpipe import hyperparams, user_error
from lingvo_gpipe.jobs import progress
from tasks.mt import (
  preparation,
  preparation_options,
  translation_data,
  translation_input,
)


def CacheFolder(vocab_size: int) -> str:
  """Where the data is kept that was prepared before."""
  cache = os.environ.get('XDG_CACHE_HOME') or os.path.join('~', '.cache')
  version = importlib.metadata.version('django')
  return os.path.join(
    os.path.expanduser(cache),
    'lingvo_gpipe',
    f'django-{version}-{vocab_size}',
  )


def Ensure(folder: str, vocab_size: int) -> None:
  """Prepares the data unless it is there.

  Args:
    folder: to hold it.
    vocab_size: ids of the vocabulary.

  Raises:
    UserError: where it cannot be written.
  """
  if os.path.exists(os.path.join(folder, preparation_options.INDEX_FILE)):
    return
  with user_error.Expected(OSError):  # Not after the work.
    os.makedirs(os.path.dirname(folder), exist_ok=True)
  progress.Show(f'preparing the texts of Django, once, in {folder}')
  options = preparation_options.Options(
    source='django', output=folder, vocab_size=vocab_size
  )
  try:
    preparation.Prepare(options, progress.Show)
  except user_error.UserError:
    # Another process may have been quicker.
    if not os.path.exists(os.path.join(folder, preparation_options.INDEX_FILE)):
      raise


class DjangoInput(translation_input.TranslationInput):
  """TranslationInput of data_dir, or without one of Django's catalogues."""

  def __init__(self, params: hyperparams.InstantiableParams):
    p = params.Copy()
    self._is_own = not p.data_dir
    if self._is_own:
      p.data_dir = CacheFolder(p.vocab_size)
    super().__init__(p)

  @functools.cached_property
  def _data(self) -> translation_data.TranslationData:
    if self._is_own:
      Ensure(self.params.data_dir, self.params.vocab_size)
    return super()._data
