"""Fine-tuning of AmoebaNet-B (18, 512) on the data sets of the paper's Table 4.

The last layers start at random, all others from a checkpoint of
image.imagenet.AmoebaNetB18x512:

  trainer --model=image.transfer.OxfordPets --data_dir=/data \\
      --init_checkpoint=/runs/imagenet --logdir=/runs/pets

As in the paper: 480 x 480 pixels, random horizontal flips, cutout, and the
hyper-parameters of ImageNet (section 4). How long it fine-tunes, with which
batch size and learning rate the paper does not tell; the constants here are
ours.
"""

from __future__ import annotations

from lingvo_gpipe import hyperparams, registry
from params.image import imagenet
from tasks.image import (
  cutout,
  flip,
  folder_source,
  image_input,
  inception_crop,
  tfds_source,
)

_Params = hyperparams.InstantiableParams


def Heads(task: _Params) -> list[_Params]:
  """The params of the cells that know the classes."""
  return [cell for cell in task.net.cells if 'num_classes' in cell]


def NewLayers(task: _Params) -> list[str]:
  """Patterns of the variables whose shapes depend on the classes."""
  return [f'{head.name}/dense/.*' for head in Heads(task)]


class Transfer(imagenet.AmoebaNetB18x512):
  """The base class: the network of ImageNet with other classes.

  Attributes of subclasses:
    NUM_CLASSES: of the data set.
    NUM_TRAIN: of the data set.
    SOURCE: (name in TFDS, split to train on, split to test on); None: folders
      train and test in --data_dir, with a folder for each class.
  """

  SOURCE: tuple[str, str, str] | None = None
  NUM_TRAIN = 0
  EPOCHS = 50.0
  WARMUP_EPOCHS = 1.0
  DECAY_EPOCHS = 2.5
  LEARNING_RATE = 0.01

  def Task(self) -> _Params:
    p = super().Task()
    p.train.init_from.exclude = NewLayers(p)
    return p

  def Transforms(self) -> list[_Params]:
    return [
      inception_crop.InceptionCrop.Params(),
      flip.RandomFlip.Params(),
      cutout.Cutout.Params().Set(size=self.IMAGE_SIZE // 4),
    ]

  def Input(self, split: str) -> _Params:
    """Input params of a split, as it is evaluated."""
    return image_input.ImageInput.Params().Set(
      source=self._Source(split),
      image_size=self.IMAGE_SIZE,
      num_classes=self.NUM_CLASSES,
      batch_size=self.BATCH_SIZE,
    )

  def _Source(self, split: str) -> _Params:
    if self.SOURCE is None:
      return folder_source.FolderSource.Params().Set(
        split='train' if split == 'train' else 'test'
      )
    name, train, test = self.SOURCE
    return tfds_source.TfdsSource.Params().Set(
      dataset=name, split=train if split == 'train' else test
    )


@registry.RegisterSingleTaskModel
class Cifar10(Transfer):
  """CIFAR-10; the paper reports 99.0%."""

  SOURCE = 'cifar10', 'train', 'test'
  NUM_CLASSES = 10
  NUM_TRAIN = 50_000


@registry.RegisterSingleTaskModel
class Cifar100(Transfer):
  """CIFAR-100; the paper reports 91.3%."""

  SOURCE = 'cifar100', 'train', 'test'
  NUM_CLASSES = 100
  NUM_TRAIN = 50_000


@registry.RegisterSingleTaskModel
class StanfordCars(Transfer):
  """Stanford Cars; the paper reports 94.6%."""

  SOURCE = 'cars196', 'train', 'test'
  NUM_CLASSES = 196
  NUM_TRAIN = 8_144


@registry.RegisterSingleTaskModel
class OxfordPets(Transfer):
  """Oxford Pets; the paper reports 95.9%."""

  SOURCE = 'oxford_iiit_pet', 'train', 'test'
  NUM_CLASSES = 37
  NUM_TRAIN = 3_680


@registry.RegisterSingleTaskModel
class Food101(Transfer):
  """Food-101, whose test split TFDS calls validation; paper: 93.0%."""

  SOURCE = 'food101', 'train', 'validation'
  NUM_CLASSES = 101
  NUM_TRAIN = 75_750


@registry.RegisterSingleTaskModel
class FgvcAircraft(Transfer):
  """FGVC Aircraft as folders, one for each variant; paper: 92.7%."""

  NUM_CLASSES = 100
  NUM_TRAIN = 6_667


@registry.RegisterSingleTaskModel
class Birdsnap(Transfer):
  """Birdsnap as folders, one for each species; paper: 83.6%."""

  NUM_CLASSES = 500
  NUM_TRAIN = 47_386
