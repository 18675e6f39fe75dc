"""Image classification sets that TensorFlow Datasets (TFDS) prepared."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from lingvo_gpipe import base_input, hyperparams, user_error
from tasks.image import image_source, sharded_order, tfds_data


class _Data(NamedTuple):
  """What is known of a split without reading its records.

  Attributes:
    builder: of TFDS.
    features: the image and the label, a FeaturesDict.
    files: FileInstructions: path, skip, take. None: TFDS itself has to read.
    num_examples: of the split.
  """

  builder: Any
  features: Any
  files: list[Any] | None
  num_examples: int


class TfdsSource(image_source.ImageSource):
  """A dataset by its name in TFDS, such as imagenet2012 or cifar10.

  Any dataset serves that has an image and a class label and lies in tfrecord
  files: those that TFDS knows, and those written by store_as_tfds_dataset.
  Nothing is downloaded unless `download` says so.

  Each epoch takes the files in an order of its own, in groups that are open at
  a time, and permutes windows of what it reads from a group in memory.
  """

  @classmethod
  def Params(cls) -> hyperparams.InstantiableParams:
    p = super().Params()
    p.Define(
      'dataset',
      '',
      'NAME, NAME/CONFIG, NAME:VERSION or NAME/CONFIG:VERSION. data_dir is '
      'where NAME lies; if empty, $TFDS_DATA_DIR or ~/tensorflow_datasets. '
      "split may be a slice, such as 'train[:98%]'.",
    )
    p.Define(
      'download',
      False,
      'Whether TFDS may download and prepare what is not there.',
    )
    p.Define('image_key', 'image', 'The feature that is the image.')
    p.Define('label_key', 'label', 'The feature that is the class.')
    p.Define('files_at_a_time', 8, 'Files of a group.')
    p.Define(
      'shuffle_megabytes',
      256,
      'Size of a window, in encoded pictures; two are in memory.',
    )
    return p

  def __init__(self, params: hyperparams.InstantiableParams):
    super().__init__(params)
    p = self.params
    for name in ('files_at_a_time', 'shuffle_megabytes'):
      if p.Get(name) < 1:
        raise ValueError(f'TfdsSource: {name}={p.Get(name)} must be 1 or more')

  @functools.cached_property
  def _data(self) -> _Data:
    p = self.params
    if not p.dataset:
      raise user_error.UserError(
        'which dataset? Set input.source.dataset to its name in TFDS, such as '
        'imagenet2012'
      )
    builder, has_files = tfds_data.Builder(
      tfds_data.DataDir(p.data_dir), p.dataset, download=p.download
    )
    with tfds_data.Quiet():
      features = self._Features(builder.info.features)
      if not has_files:
        size = int(self._ThroughTfds(builder, features).cardinality())
        return _Data(builder, features, None, size)
      return self._DataOfFiles(builder, features)

  def _DataOfFiles(self, builder: Any, features: Any) -> _Data:
    p = self.params
    file_format = builder.info.file_format.value
    if file_format != 'tfrecord':
      raise user_error.UserError(
        f'{builder.data_dir} holds {file_format} files; only tfrecord can be '
        'read here: prepare the dataset with file_format=tfrecord'
      )
    try:
      split = builder.info.splits[p.split]
    except (KeyError, ValueError) as e:
      raise user_error.UserError(
        f'input.source.split={p.split!r}: {p.dataset} has the splits '
        f'{", ".join(sorted(builder.info.splits))}, and slices of them such as '
        "'train[:98%]'"
      ) from e
    files = [x for x in split.file_instructions if x.take]
    tfds_data.CheckFiles(p.dataset, [x.filename for x in files])
    return _Data(builder, features, files, sum(x.take for x in files))

  def _Features(self, features: Any) -> Any:
    """The image and the label of all features, checked."""
    p, tfds = self.params, tfds_data.Import()
    keys = {
      p.image_key: tfds.features.Image,
      p.label_key: tfds.features.ClassLabel,
    }
    features = dict(features.items())
    for key, kind in keys.items():
      if not isinstance(features.get(key), kind):
        kinds = [
          f'{k} ({type(v).__name__})' for k, v in sorted(features.items())
        ]
        raise user_error.UserError(
          f'{p.dataset} has no {kind.__name__} feature {key!r}; it has '
          f'{", ".join(kinds)}. Set input.source.image_key and label_key'
        )
    return tfds.features.FeaturesDict({key: features[key] for key in keys})

  @property
  def class_names(self) -> tuple[str, ...]:
    label = self._data.features[self.params.label_key]
    return tuple(label.int2str(i) for i in range(label.num_classes))

  @property
  def num_examples(self) -> int:
    return self._data.num_examples

  def Examples(
    self, start: int, *, training: bool, seed: int
  ) -> image_source.Examples:
    data = self._data
    if data.files is None:
      read, lengths = self._ReadThroughTfds, [data.num_examples]
      paths = [data.builder.info.full_name]
    else:
      read, lengths = self._FileReader(), [x.take for x in data.files]
      paths = [x.filename for x in data.files]
    if training:
      elements = sharded_order.Shuffled(
        read,
        lengths,
        start,
        seed=seed,
        group_size=self.params.files_at_a_time,
        window=self._Window(),
      )
    else:
      elements = sharded_order.Straight(read, lengths, start)
    paths = tf.constant(paths)

    def _Name(element):
      return tf.strings.join(
        [
          tf.gather(paths, element['file']),
          ', record ',
          tf.strings.as_string(element['place']),
        ]
      )

    return image_source.Examples(elements, self._Load, _Name)

  def _Load(self, element: Any) -> dict[str, tf.Tensor]:
    p, record = self.params, element['record']
    if self._data.files is not None:
      skip = tfds_data.Import().decode.SkipDecoding()
      record = self._data.features.deserialize_example(
        record, decoders={p.image_key: skip}
      )
    return {'image': record[p.image_key], 'label': record[p.label_key]}

  def _FileReader(self) -> sharded_order.Read:
    """Reads the records of a file that are of the split.

    Returns:
      A function from the number of a file to its elements. Where records are
      missing it fails with the name of the file.
    """
    files = self._data.files
    paths = tf.constant([x.filename for x in files])
    skips = tf.constant([x.skip for x in files], tf.int64)
    takes = tf.constant([x.take for x in files], tf.int64)

    @tf.autograph.experimental.do_not_convert
    def _Checked(file, expected, found):
      place, record = found
      complete = base_input.Check(
        place == expected,
        lambda: tf.strings.join(
          [
            tf.gather(paths, file),
            ' is damaged or incomplete from record ',
            tf.strings.as_string(expected),
            ' on: copy it again, or prepare the dataset anew',
          ]
        ),
      )
      with tf.control_dependencies([complete]):
        return _Element(file, tf.identity(place), record)

    def _Read(file):
      skip, take = tf.gather(skips, file), tf.gather(takes, file)
      # Errors are dropped, at most `take`; they leave gaps among the places.
      records = tf.data.Dataset.zip(
        tf.data.Dataset.range(skip, skip + take),
        tf.data.TFRecordDataset(tf.gather(paths, file)).skip(skip),
      ).ignore_errors()
      end = tf.data.Dataset.from_tensors((tf.constant(-1, tf.int64), ''))
      return (
        records.concatenate(end)
        .take(take)
        .enumerate(skip)
        .map(functools.partial(_Checked, file))
      )

    return _Read

  def _Window(self) -> int:
    """How many examples are permuted together."""
    data = self._data
    if data.files is None:
      return data.num_examples
    # The files of a split are about equally large.
    file = data.files[0]
    size = tf.io.gfile.stat(file.filename).length / file.examples_in_shard
    return max(1, int(self.params.shuffle_megabytes * 1e6 / size))

  # Data that TFDS itself has to read: that of tfds.testing.mock_data.

  def _ThroughTfds(self, builder: Any, features: Any) -> tf.data.Dataset:
    tfds = tfds_data.Import()
    with tfds_data.Quiet():
      return builder.as_dataset(
        split=self.params.split,
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding(
          {key: True for key in features},
          {self.params.image_key: tfds.decode.SkipDecoding()},
        ),
      )

  def _ReadThroughTfds(self, file: tf.Tensor) -> tf.data.Dataset:
    examples = self._ThroughTfds(self._data.builder, self._data.features)
    return examples.enumerate().map(functools.partial(_Element, file))


def _Element(file: tf.Tensor, place: tf.Tensor, record: Any) -> dict[str, Any]:
  """A record, and where it comes from."""
  return {'file': file, 'place': place, 'record': record}
