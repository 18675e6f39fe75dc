"""ImageNet classification: the GPipe paper's AmoebaNets, and ResNets.

Training needs ImageNet, prepared by tools/imagenet; docs/images.md says how.
Everything else, such as --mode=inspect_model, works without it.

The paper leaves most of its recipe to "the same hyper-parameters" as earlier
work (section 4). AmoebaNet-B(18,512) below has what its first version and
AmoebaNet's paper (Real et al., arXiv 1802.01548) name; AmoebaNet-D has the
settings of the code that its authors published in tensorflow/tpu. Where the two
differ, a class says so by its constants. To change batch size, epochs or
learning rate, subclass a model and set them: decay and warm-up, which are given
in epochs, then follow.
"""

from __future__ import annotations

from lingvo_gpipe import (
  base_model_params,
  base_task,
  hyperparams,
  registry,
)
from lingvo_gpipe.layers import norm
from lingvo_gpipe.train import optimizers, schedules
from tasks.image import (
  amoebanet,
  auto_augment,
  flip,
  image_input,
  inception_crop,
  resnet,
  tfds_source,
)

_Params = hyperparams.InstantiableParams


class ImageNet(base_model_params.SingleTaskModelParams):
  """The base class: data, and a recipe counted in epochs.

  Attributes of subclasses:
    IMAGE_SIZE: height and width.
    NUM_CLASSES: 1000, or 1001 with a class 0 that no image has, as
      tensorflow/tpu counts.
    NUM_TRAIN: training images, which epochs are counted by.
    BATCH_SIZE: N, the mini-batch.
    NUM_PARTITIONS: K.
    NUM_MICRO_BATCHES: M.
    EPOCHS: of training.
    LEARNING_RATE: before decay, for the whole mini-batch.
    WARMUP_EPOCHS: of a linear warm-up from 0.
    CLIP_NORM: of all gradients together; 0: not clipped.
    EMA_DECAY: of the averages of weights that evaluation uses; 0: none.
    L2: the regularizer's weight, on kernels only.
  """

  IMAGE_SIZE = 224
  NUM_CLASSES = 1000
  NUM_TRAIN = 1_281_167
  BATCH_SIZE = 128
  NUM_PARTITIONS = 1
  NUM_MICRO_BATCHES = 32
  EPOCHS = 90.0
  LEARNING_RATE = 0.1
  WARMUP_EPOCHS = 3.0
  CLIP_NORM = 0.0
  EMA_DECAY = 0.9999
  L2 = 4e-5

  def Train(self) -> _Params:
    return self.Input('train').Set(training=True, transforms=self.Transforms())

  def Test(self) -> _Params:
    """The 50,000 images that results on ImageNet are reported for."""
    return self.Input('validation')

  def Transforms(self) -> list[_Params]:
    """Params of the augmentation."""
    return [inception_crop.InceptionCrop.Params(), flip.RandomFlip.Params()]

  def Cells(self) -> list[_Params]:
    """Params of the network's cells."""
    raise NotImplementedError(f'{type(self).__name__}.Cells')

  def Optimizer(self) -> _Params:
    """Params of the optimizer."""
    raise NotImplementedError(f'{type(self).__name__}.Optimizer')

  def Decay(self) -> _Params:
    """Params of the learning rate's schedule after the warm-up."""
    raise NotImplementedError(f'{type(self).__name__}.Decay')

  def Task(self) -> _Params:
    p = base_task.BaseTask.Params().Set(name='image')
    p.net.Set(
      cells=self.Cells(),
      num_partitions=self.NUM_PARTITIONS,
      num_micro_batches=self.NUM_MICRO_BATCHES,
    )
    p.train.Set(
      max_steps=round(self.Steps(self.EPOCHS)),
      log_interval_steps=100,
      summary_interval_steps=100,
    )
    p.train.ema.decay = self.EMA_DECAY
    p.train.learner.Set(
      optimizer=self.Optimizer(),
      learning_rate=self.LEARNING_RATE,
      lr_schedule=schedules.LinearRampup.Params().Set(
        warmup_steps=round(self.Steps(self.WARMUP_EPOCHS)),
        schedule=self.Decay(),
      ),
      clip_gradient_norm_to_value=self.CLIP_NORM,
      l2_regularizer_weight=self.L2,
    )
    return p

  def Steps(self, epochs: float) -> float:
    """How many mini-batches so many epochs have; not rounded."""
    return epochs * self.NUM_TRAIN / self.BATCH_SIZE

  def Input(self, split: str) -> _Params:
    """Input params of a split of ImageNet, as it is evaluated."""
    return image_input.ImageInput.Params().Set(
      source=tfds_source.TfdsSource.Params().Set(
        dataset='imagenet2012', split=split
      ),
      image_size=self.IMAGE_SIZE,
      num_classes=self.NUM_CLASSES,
      label_offset=self.NUM_CLASSES - 1000,
      batch_size=self.BATCH_SIZE,
    )


class AmoebaNet(ImageNet):
  """AmoebaNet-D with the settings of tensorflow/tpu.

  Attributes of subclasses:
    GENOTYPE: of the cells.
    NUM_LAYERS: L, normal cells.
    NUM_FILTERS: D, filters of the first of them.
    DROP_PATH_BY_DEPTH: whether paths of later cells are dropped more often.
    DECAY_EPOCHS: the learning rate falls by 0.97 every so many epochs.
    EPSILON: of RMSProp.
    BATCH_NORM_DECAY: of the moving moments.
  """

  GENOTYPE = 'amoebanet_d'
  NUM_LAYERS = 18
  NUM_FILTERS = 256
  NUM_CLASSES = 1001
  DROP_PATH_BY_DEPTH = False
  LEARNING_RATE = 0.015
  DECAY_EPOCHS = 2.4
  EPSILON = 1.0
  BATCH_NORM_DECAY = 0.9997
  CLIP_NORM = 10.0
  AUX_LOSS_WEIGHT = 0.4

  def Cells(self) -> list[_Params]:
    return amoebanet.AmoebaNetCells(
      genotype=self.GENOTYPE,
      num_layers=self.NUM_LAYERS,
      num_filters=self.NUM_FILTERS,
      image_size=self.IMAGE_SIZE,
      num_classes=self.NUM_CLASSES,
      keep_prob=0.5,
      label_smoothing=0.1,
      aux_loss_weight=self.AUX_LOSS_WEIGHT,
      drop_path_keep_prob=0.7,
      drop_path_by_depth=self.DROP_PATH_BY_DEPTH,
      drop_path_ramp_steps=round(self.Steps(self.EPOCHS)),
      batch_norm=norm.BatchNorm.Params().Set(
        decay=self.BATCH_NORM_DECAY, epsilon=1e-3
      ),
    )

  def Optimizer(self) -> _Params:
    return optimizers.RMSProp.Params().Set(epsilon=self.EPSILON)

  def Decay(self) -> _Params:
    return schedules.Exponential.Params().Set(
      decay_rate=0.97,
      decay_steps=self.Steps(self.DECAY_EPOCHS),
      staircase=True,
    )


@registry.RegisterSingleTaskModel
class AmoebaNetB18x512(AmoebaNet):
  """The paper's 557M parameters: AmoebaNet-B (18, 512), 480 px, 4 partitions.

  84.4% top-1 in the paper (Table 4). Section 4 gives image size and partitions;
  its batch size is not known, 128 is that of Table 1.
  """

  GENOTYPE = 'amoebanet_b'
  NUM_FILTERS = 512
  NUM_CLASSES = 1000
  IMAGE_SIZE = 480
  NUM_PARTITIONS = 4
  DROP_PATH_BY_DEPTH = True
  LEARNING_RATE = 0.00125 * ImageNet.BATCH_SIZE
  DECAY_EPOCHS = 3.0
  EPSILON = 0.1


@registry.RegisterSingleTaskModel
class AmoebaNetB18x512AutoAugment(AmoebaNetB18x512):
  """AmoebaNetB18x512 with the AutoAugment policy of ImageNet.

  The paper does not use it; the results that it compares with on CIFAR and
  Stanford Cars do.
  """

  def Transforms(self) -> list[_Params]:
    return [
      *super().Transforms(),
      auto_augment.AutoAugment.Params().Set(policy='imagenet'),
    ]


@registry.RegisterSingleTaskModel
class AmoebaNetD18x208(AmoebaNet):
  """82M parameters, the largest without GPipe (Table 1, Naive-1)."""

  NUM_FILTERS = 208
  NUM_MICRO_BATCHES = 1


@registry.RegisterSingleTaskModel
class AmoebaNetD18x416(AmoebaNet):
  """318M parameters on one device by re-materialization (Table 1)."""

  NUM_FILTERS = 416


@registry.RegisterSingleTaskModel
class AmoebaNetD18x544(AmoebaNet):
  """542M parameters, 2 partitions (Table 1)."""

  NUM_FILTERS = 544
  NUM_PARTITIONS = 2


@registry.RegisterSingleTaskModel
class AmoebaNetD36x544(AmoebaNet):
  """1.05B parameters, 4 partitions (Table 1)."""

  NUM_LAYERS = 36
  NUM_FILTERS = 544
  NUM_PARTITIONS = 4


@registry.RegisterSingleTaskModel
class AmoebaNetD72x512(AmoebaNet):
  """1.8B parameters, 8 partitions (Table 1)."""

  NUM_LAYERS = 72
  NUM_FILTERS = 512
  NUM_PARTITIONS = 8


@registry.RegisterSingleTaskModel
class AmoebaNetD18x128(AmoebaNet):
  """32M parameters, for the throughput without fast links of Table 3."""

  NUM_FILTERS = 128
  NUM_PARTITIONS = 2


@registry.RegisterSingleTaskModel
class AmoebaNetD18x256(AmoebaNet):
  """122M parameters, for the throughput of Table 2: 2, 4 and 8 partitions."""

  NUM_PARTITIONS = 2


class ResNet(ImageNet):
  """ResNet v1.5 with momentum and a cosine (He et al., arXiv 1812.01187).

  Attributes of subclasses:
    DEPTH: 50 or 101.
  """

  DEPTH = 50
  BATCH_SIZE = 256
  NUM_MICRO_BATCHES = 8
  NUM_PARTITIONS = 2
  LEARNING_RATE = 0.1
  WARMUP_EPOCHS = 5.0
  EMA_DECAY = 0.0
  L2 = 1e-4

  def Cells(self) -> list[_Params]:
    return resnet.ResNetCells(
      depth=self.DEPTH,
      num_classes=self.NUM_CLASSES,
      label_smoothing=0.1,
    )

  def Optimizer(self) -> _Params:
    return optimizers.Momentum.Params().Set(momentum=0.9, use_nesterov=True)

  def Decay(self) -> _Params:
    return schedules.Cosine.Params()


@registry.RegisterSingleTaskModel
class ResNet50(ResNet):
  """25.6M parameters, 2 partitions."""


@registry.RegisterSingleTaskModel
class ResNet101(ResNet):
  """44.5M parameters, 4 partitions."""

  DEPTH = 101
  NUM_PARTITIONS = 4
