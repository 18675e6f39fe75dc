"""Pairs of the translation sets of TensorFlow Datasets (TFDS)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lingvo_gpipe import user_error
from lingvo_gpipe.config import spelling
from tasks.image import tfds_data
from tasks.mt import parallel_text

# How datasets call the parts that are held out.
_SPLITS = {'validation': 'dev', 'dev': 'dev', 'test': 'test'}


def Read(
  dataset: str, *, data_dir: str = '', download: bool = False
) -> Iterator[parallel_text.Pair]:
  """Reads all parts of a dataset between English and other languages.

  Args:
    dataset: NAME or NAME/CONFIG, such as wmt16_translate/de-en or
      ted_multi_translate.
    data_dir: where TFDS has its data; '' is $TFDS_DATA_DIR or
      ~/tensorflow_datasets.
    download: whether TFDS may download and prepare what is not there.

  Yields:
    The pairs, with the split that they are held out for. Texts in several
    languages give a pair for each language but English.

  Raises:
    UserError: for data that is not there, or has no English.
  """
  tfds = tfds_data.Import()
  directory = tfds_data.DataDir(data_dir)
  with tfds_data.Quiet():
    builder = _Builder(tfds, dataset, directory)
    if download:
      _Download(tfds, builder, dataset)
    feature, is_list = _Feature(tfds, builder, dataset)
    try:
      splits = builder.as_dataset()
    except (AssertionError, ValueError) as e:
      raise user_error.UserError(
        f'{dataset}: no prepared data in {directory}; say where it is by '
        '--data_dir, or let TFDS download it by --download'
      ) from e
  for name, examples in splits.items():
    for example in tfds.as_numpy(examples):
      texts = example[feature] if feature else example
      translations = _List(texts) if is_list else texts.items()
      yield from _Pairs(list(translations), dataset, _SPLITS.get(name, ''))


def _Builder(tfds: Any, dataset: str, directory: str) -> Any:
  flag = f'--source=tfds:{dataset}'
  try:
    return tfds.builder(dataset, data_dir=directory)
  except tfds.core.registered.DatasetNotFoundError as e:
    # Those of the community are a list to be downloaded.
    names = tfds.list_builders(with_community_datasets=False)
    raise user_error.UserError(
      f'{flag}: TFDS knows no such dataset, and {directory} has none'
      + spelling.Hint(dataset.partition('/')[0], names, 'datasets')
    ) from e
  except (ValueError, AssertionError) as e:  # No such config or version.
    raise user_error.UserError(f'{flag}: {e}') from e


def _Download(tfds: Any, builder: Any, dataset: str) -> None:
  config = tfds.download.DownloadConfig(try_download_gcs=False)
  try:
    builder.download_and_prepare(download_config=config)
  except Exception as e:  # Each dataset has its own ways to fail.
    raise user_error.UserError(
      f'{dataset}: TFDS could not download or prepare it in '
      f'{builder.data_dir}: {e}'
    ) from e


def _Feature(tfds: Any, builder: Any, dataset: str) -> tuple[str, bool]:
  """Where translations are.

  Args:
    tfds: the module.
    builder: of the dataset.
    dataset: its name.

  Returns:
    (name of the feature, '' if an example is nothing else; whether it is a list
    of languages and texts rather than {language: text}).
  """
  features = builder.info.features
  candidates = {'': features, **dict(features.items())}
  for name, feature in candidates.items():
    if isinstance(feature, tfds.features.TranslationVariableLanguages):
      return name, True
    if isinstance(feature, tfds.features.Translation):
      return name, False
  raise user_error.UserError(
    f'--source=tfds:{dataset} is no set of translations; its features are '
    f'{", ".join(sorted(features))}'
  )


def _List(texts: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
  for language, text in zip(
    texts['language'], texts['translation'], strict=True
  ):
    yield language.decode(), text


def _Pairs(
  translations: list[tuple[str, bytes]], dataset: str, split: str
) -> Iterator[parallel_text.Pair]:
  """The text in English with each of the others; none without English."""
  english = [x for code, x in translations if code == parallel_text.ENGLISH]
  for code, text in translations:
    if english and not parallel_text.IsEnglish(code.replace('-', '_')):
      language = parallel_text.Language(code, f'--source=tfds:{dataset}')
      yield parallel_text.Pair(
        language, english[0].decode(), text.decode(), split
      )
