"""The inputs of image classification that are measured, and measuring one."""

from __future__ import annotations

from collections.abc import Callable

from tasks.image import (
  auto_augment,
  flip,
  folder_source,
  image_input,
  inception_crop,
  tfds_source,
)
from tools.benchmarks import generated_pictures


def Inputs(
  folders: str,
  dataset: str,
  *,
  image_size: int,
  batch_size: int,
  num_parallel_calls: int,
) -> dict[tuple[str, str], image_input.ImageInput]:
  """Endless inputs over generated pictures.

  Args:
    folders: as generated_pictures.Write returns it.
    dataset: likewise.
    image_size: see ImageInput.
    batch_size: likewise.
    num_parallel_calls: likewise.

  Returns:
    {(source, transforms): input}.
  """
  sources = {
    'folder': folder_source.FolderSource.Params().Set(data_dir=folders),
    'tfds': tfds_source.TfdsSource.Params().Set(
      data_dir=dataset, dataset=generated_pictures.DATASET
    ),
  }
  crop = [inception_crop.InceptionCrop.Params(), flip.RandomFlip.Params()]
  transforms = {
    'centre crop': [],
    'random crop, flip': crop,
    'random crop, flip, AutoAugment': [
      *crop,
      auto_augment.AutoAugment.Params(),
    ],
  }
  return {
    (source, name): image_input.ImageInput.Params()
    .Set(
      source=sources[source].Copy(),
      transforms=transforms[name],
      training=True,
      image_size=image_size,
      batch_size=batch_size,
      num_parallel_calls=num_parallel_calls,
    )
    .Instantiate()
    for source in sources
    for name in transforms
  }


def Rate(
  generator: image_input.ImageInput, seconds: float, now: Callable[[], float]
) -> float:
  """Reads mini-batches for a while.

  Args:
    generator: gives them without end.
    seconds: how long; building and filling the pipeline come before.
    now: seconds from any start.

  Returns:
    Images per second.
  """
  batches = iter(generator.Dataset())
  for _ in range(2):
    next(batches)
  start, count = now(), 0
  while now() - start < seconds:
    next(batches)
    count += 1
  return count * generator.params.batch_size / (now() - start)
