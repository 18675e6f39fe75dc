"""Your own pictures: a folder for each class, in --data_dir.

  trainer --model=image.folder.AmoebaNetSmall --data_dir=/my/pictures \\
      --logdir=/tmp/mine

docs/images.md shows the layouts. The number of classes is that of the folders.
With --init_checkpoint all but the last layers start from a run of a model of
the same network: of image.emoji.AmoebaNetEmoji for AmoebaNetSmall, of those of
image.imagenet for the others.
"""

from __future__ import annotations

from lingvo_gpipe import hyperparams, registry
from params.image import emoji, imagenet, transfer
from tasks.image import flip, folder_source, image_input, inception_crop

_Params = hyperparams.InstantiableParams


class _Folder:
  """What the models below have in common; goes before their other base.

  Attributes of subclasses:
    NUM_CLASSES: before the folders are known, such as in --mode=inspect_model
      without --data_dir.
  """

  NUM_CLASSES = 1000

  def Train(self) -> _Params:
    return self.Input('train').Set(training=True, transforms=self.Transforms())

  def Dev(self) -> _Params:
    """Folder val, or a part of all pictures, chosen by a hash."""
    return self.Input('validation')

  def Transforms(self) -> list[_Params]:
    return [
      inception_crop.InceptionCrop.Params().Set(min_area=0.25),
      flip.RandomFlip.Params(),
    ]

  def Task(self) -> _Params:
    p = super().Task()
    p.train.init_from.exclude = transfer.NewLayers(p)
    return p

  def Complete(self, params: _Params) -> None:
    """Counts the classes."""
    super().Complete(params)
    p = params.input
    if not p.source.data_dir:
      return
    p.num_classes = len(p.source.Instantiate().class_names)
    for head in transfer.Heads(params):
      head.num_classes = p.num_classes

  def Input(self, split: str) -> _Params:
    """Input params of a part of the pictures, as it is evaluated."""
    return image_input.ImageInput.Params().Set(
      source=folder_source.FolderSource.Params().Set(split=split),
      image_size=self.IMAGE_SIZE,
      num_classes=self.NUM_CLASSES,
      batch_size=self.BATCH_SIZE,
    )


@registry.RegisterSingleTaskModel
class AmoebaNetSmall(_Folder, emoji.AmoebaNetEmoji):
  """The small AmoebaNet of image.emoji, 32 px: for a processor."""


@registry.RegisterSingleTaskModel
class ResNet50(_Folder, imagenet.ResNet50):
  """ResNet-50, 224 px, with the recipe of image.imagenet.ResNet50.

  Steps and decay are counted in epochs of NUM_TRAIN pictures: subclass it with
  your number, or set --max_steps.
  """

  NUM_TRAIN = 10_000


@registry.RegisterSingleTaskModel
class AmoebaNetB18x512(_Folder, imagenet.AmoebaNetB18x512):
  """The paper's 557M parameters, 480 px, 4 partitions; see ResNet50."""

  NUM_TRAIN = 10_000
