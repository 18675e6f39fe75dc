"""The input of image classification: a source, transforms, mini-batches."""

from __future__ import annotations

import tensorflow as tf

from lingvo_gpipe import (
  base_input,
  hyperparams,
  nested_map,
  user_error,
  weights,
)
from lingvo_gpipe.export import serving_signature
from tasks.image import (
  image_source,
  image_transform,
  named_failures,
  picture,
  serving,
)

NestedMap = nested_map.NestedMap


class ImageInput(base_input.BaseInput):
  """Mini-batches of `inputs`, `labels` and `weights`.

  inputs [N, image_size, image_size, 3] are colours from 0 to 1, less `mean` and
  divided by `std`. With mixup there are also `mixed_labels` and `mix`, see
  mixup.Mixup.

  In training the transforms are applied, in their order, each with a seed that
  follows from `random_seed` and the number of the example (of the mini-batch,
  for those that change one). If the first is no Crop, training sees the same
  part of a picture as evaluation.

  A picture that cannot be decoded is an error that names it.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define('source', None, 'Params of an image_source.ImageSource.')
    p.Define('image_size', 224, 'Height and width of inputs.')
    p.Define(
      'num_classes',
      0,
      'Of the model; checked against the source. 0: not checked.',
    )
    p.Define(
      'label_offset',
      0,
      'Added to labels: 1 where class 0 of the model is that of no picture.',
    )
    p.Define(
      'transforms',
      [],
      'Params of image_transform.Transforms. They act in training only; for a '
      'model with mixup they must be in evaluation, too, for its fields.',
    )
    p.Define(
      'resize_mode',
      'crop',
      "What evaluation sees. 'crop': crop_fraction of the height and of the "
      "width around the centre. 'square': a centred square, its side "
      "crop_fraction of the shorter side. 'stretch': the whole picture.",
    )
    p.Define('crop_fraction', 0.875, 'See resize_mode; the default is usual.')
    p.Define(
      'antialias',
      False,
      'Whether resizing looks at all pixels, not at the four nearest: better '
      'for pictures much larger than image_size, and slower.',
    )
    p.Define('mean', [0.485, 0.456, 0.406], 'Of red, green, blue from 0 to 1.')
    p.Define('std', [0.229, 0.224, 0.225], 'Likewise; the defaults: ImageNet.')
    p.Define(
      'num_parallel_calls',
      0,
      'Pictures to decode at a time; 0: as many as tf.data thinks best.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    if p.source is None:
      raise ValueError('ImageInput: source is missing')
    if p.resize_mode not in picture.CENTRE_MODES:
      raise ValueError(
        f'ImageInput: resize_mode={p.resize_mode!r} is none of '
        f'{", ".join(picture.CENTRE_MODES)}'
      )
    if not 0 < p.crop_fraction <= 1:
      raise ValueError(
        f'ImageInput: crop_fraction={p.crop_fraction} must be above 0 and at '
        'most 1'
      )
    if p.image_size < 1 or p.num_parallel_calls < 0:
      raise ValueError(
        f'ImageInput: image_size={p.image_size} must be 1 or more, '
        f'num_parallel_calls={p.num_parallel_calls} 0 or more'
      )
    self._source: image_source.ImageSource = p.source.Instantiate()
    self._SetTransforms([x.Instantiate() for x in p.transforms])

  def _SetTransforms(self, transforms: list[image_transform.Transform]) -> None:
    kinds = (
      image_transform.Crop,
      image_transform.ImageTransform,
      image_transform.BatchTransform,
    )
    order = [
      next((i for i, kind in enumerate(kinds) if isinstance(x, kind)), None)
      for x in transforms
    ]
    if None in order or order != sorted(order) or order.count(0) > 1:
      raise ValueError(
        'ImageInput: transforms must be at most one Crop, then '
        'ImageTransforms, then BatchTransforms, not '
        + ', '.join(type(x).__name__ for x in transforms)
      )
    # Each with a number, which its seed depends on.
    self._crops, self._image_transforms, self._batch_transforms = (
      [(i, x) for i, x in enumerate(transforms) if order[i] == kind]
      for kind in range(len(kinds))
    )
    if not self.params.training:
      self._crops, self._image_transforms = [], []

  def BatchSpec(self) -> NestedMap:
    p = self.params
    n, size = p.batch_size, p.image_size
    spec = NestedMap(
      inputs=tf.TensorSpec([n, size, size, 3], tf.float32),
      labels=tf.TensorSpec([n], tf.int32),
      weights=tf.TensorSpec([n], tf.float32),
    )
    for _, transform in self._batch_transforms:
      spec.update(transform.ExtraFields(n))
    return spec

  @property
  def class_names(self) -> tuple[str, ...]:
    """Names of the source's classes; the first is that of `label_offset`."""
    return self._source.class_names

  def ClassNames(self) -> list[str]:
    """For exported models: a name for each class of the model."""
    self._CheckClasses()
    return ['background'] * self.params.label_offset + list(self.class_names)

  def ServingSignatures(self) -> dict[str, serving_signature.ServingSignature]:
    """Images as in a batch, and picture files; see serving."""
    size = self.params.image_size
    return serving.Signatures([size, size, 3], self._FromBytes)

  def _FromBytes(self, contents: tf.Tensor) -> tf.Tensor:
    """What evaluation makes of a picture file: [image_size, image_size, 3]."""
    p = self.params
    image = picture.DecodeBox(
      contents,
      lambda size: picture.CentreBox(size, p.resize_mode, p.crop_fraction),
    )
    return self.Normalise(picture.Resize(image, p.image_size, p.antialias))

  @property
  def num_examples(self) -> int:
    self._CheckClasses()
    return self._source.num_examples

  def _CheckClasses(self) -> None:
    p, names = self.params, self.class_names
    if p.num_classes and len(names) + p.label_offset != p.num_classes:
      offset = f' + label_offset={p.label_offset}' if p.label_offset else ''
      raise user_error.UserError(
        f'the data has {len(names)} classes{offset}, the model num_classes='
        f'{p.num_classes}: {", ".join(names[:3])}, ... of '
        f'{p.source.data_dir or type(self._source).__name__}. Use other data '
        '(input.source) or a model with as many classes'
      )

  def Dataset(self, position: int = 0) -> tf.data.Dataset:
    p = self.params
    if not self.num_examples:
      raise user_error.UserError(f'no examples in the data: {p.source}')
    start = position * p.batch_size
    batches = (
      self._Decoded(start)
      .map(self._Augmented, num_parallel_calls=self._calls, deterministic=True)
      .batch(p.batch_size, drop_remainder=p.training)
      .enumerate(position)
    )
    return batches.map(self._Batch, num_parallel_calls=1, deterministic=True)

  @property
  def _calls(self) -> int:
    return self.params.num_parallel_calls or tf.data.AUTOTUNE

  def _Decoded(self, start: int) -> tf.data.Dataset:
    """(number in the order, picture, label), from example `start` on."""
    p = self.params
    examples = self._source.Examples(
      start, training=p.training, seed=p.random_seed
    )

    def _Decode(numbered):
      number, element = numbered
      example = examples.load(element)
      image = picture.DecodeBox(
        example['image'], lambda size: self._Box(size, number)
      )
      image = picture.Resize(image, p.image_size, p.antialias)
      return number, image, tf.cast(example['label'], tf.int32) + p.label_offset

    def _Message(numbered):
      return tf.strings.join(
        [
          examples.name(numbered[1]),
          ' cannot be read as a picture: replace it by a JPEG, PNG, BMP or GIF '
          'file, or remove it',
        ]
      )

    return named_failures.Map(
      examples.elements.enumerate(start),
      _Decode,
      _Message,
      num_parallel_calls=self._calls,
    )

  def _Box(self, size: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    p = self.params
    for i, crop in self._crops:
      return crop.Box(size, self._Seed(i, number))
    return picture.CentreBox(size, p.resize_mode, p.crop_fraction)

  def _Seed(self, transform: int, number: tf.Tensor) -> tf.Tensor:
    key = weights.Hash64('transform', self.params.random_seed, transform)
    return tf.stack([tf.constant(key, tf.int64), number])

  @tf.autograph.experimental.do_not_convert
  def _Augmented(
    self, number: tf.Tensor, image: tf.Tensor, label: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    for i, transform in self._image_transforms:
      image = transform.Apply(image, self._Seed(i, number))
    return {'inputs': self.Normalise(image), 'labels': label}

  def Normalise(self, images: tf.Tensor) -> tf.Tensor:
    """From colours between 0 and 255 to inputs of the model.

    Args:
      images: [..., 3].

    Returns:
      float32 of the same shape.
    """
    mean, std = (
      255.0 * tf.constant(x, tf.float32)
      for x in (self.params.mean, self.params.std)
    )
    return (tf.cast(images, tf.float32) - mean) / std

  @tf.autograph.experimental.do_not_convert
  def _Batch(
    self, position: tf.Tensor, batch: dict[str, tf.Tensor]
  ) -> dict[str, tf.Tensor]:
    for i, transform in self._batch_transforms:
      if self.params.training:
        batch = transform.Apply(batch, self._Seed(i, position))
      else:
        batch = transform.Unchanged(batch)
    weight = tf.ones_like(batch['labels'], tf.float32)
    batch = {**batch, 'weights': weight}
    if not self.params.training:
      batch = {name: self._Filled(value) for name, value in batch.items()}
    spec = self.BatchSpec()
    return {
      name: tf.ensure_shape(value, spec[name].shape)
      for name, value in batch.items()
    }

  def _Filled(self, value: tf.Tensor) -> tf.Tensor:
    """Fills up the last mini-batch with zeros."""
    missing = self.params.batch_size - tf.shape(value)[0]
    return tf.pad(value, [[0, missing]] + [[0, 0]] * (value.shape.rank - 1))
