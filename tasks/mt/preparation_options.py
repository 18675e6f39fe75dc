"""What to prepare: the options of tools/mt/prepare, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.mt import output_folder

# The file that makes a folder one of prepared data.
INDEX_FILE = 'data.json'

DIRECTIONS = {
  # Whether groups into English, as which there are.
  'en-xx': (False,),
  'xx-en': (True,),
  'both': (False, True),
}


@dataclasses.dataclass(frozen=True)
class Options:
  """What to prepare; the flags of tools/mt/prepare of the same names."""

  source: str
  output: str
  vocab_size: int = 8000
  vocab: str = ''
  directions: str = 'both'
  languages: Sequence[str] = ()
  min_pairs: int = 100
  temperature: float = 5.0
  jaccard: float = 0.6
  dev_share: float = 0.05
  test_share: float = 0.1
  character_coverage: float = 0.9995
  data_dir: str = ''
  download: bool = False
  overwrite: bool = False


def Check(options: Options) -> None:
  """Checks what can be known at once; UserError where it is wrong."""
  output_folder.Check(
    options.output, index=INDEX_FILE, overwrite=options.overwrite
  )
  if options.directions not in DIRECTIONS:
    raise user_error.UserError(
      f'--directions={options.directions} is not known'
      + spelling.Hint(options.directions, DIRECTIONS, 'directions')
    )
  for name, is_right, range_text in (
    ('vocab_size', options.vocab_size >= 1, '1 or more'),
    ('min_pairs', options.min_pairs >= 1, '1 or more'),
    ('temperature', options.temperature > 0, 'above 0'),
    ('jaccard', 0 < options.jaccard <= 1, 'above 0, and at most 1'),
    ('dev_share', 0 <= options.dev_share < 1, 'from 0 to below 1'),
    ('test_share', 0 <= options.test_share < 1, 'from 0 to below 1'),
    (
      'character_coverage',
      0.9 <= options.character_coverage <= 1,
      'from 0.9 to 1',
    ),
  ):
    if not is_right:
      raise user_error.UserError(
        f'--{name}={getattr(options, name)} must be {range_text}'
      )
  if options.dev_share + options.test_share >= 1:
    raise user_error.UserError(
      f'--dev_share={options.dev_share} and --test_share={options.test_share} '
      'leave nothing for training'
    )
