"""Tests of transfer: classes, and what starts from ImageNet's checkpoint."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import registry
from params.image import transfer

_MODELS = [m for m in registry.ListModels() if m.name.startswith('image.trans')]


class TransferTest(parameterized.TestCase):
  @parameterized.parameters(
    # Classes and training examples of the paper's Table 4.
    ('Cifar10', 10, 50_000),
    ('Cifar100', 100, 50_000),
    ('StanfordCars', 196, 8_144),
    ('OxfordPets', 37, 3_680),
    ('Food101', 101, 75_750),
    ('FgvcAircraft', 100, 6_667),
    ('Birdsnap', 500, 47_386),
  )
  def testTable4(self, name, num_classes, num_train):
    cls = registry.GetClass(f'image.transfer.{name}')
    self.assertEqual(cls.NUM_CLASSES, num_classes)
    self.assertEqual(cls.NUM_TRAIN, num_train)
    params = cls().Model()
    self.assertEqual(params.net.num_partitions, 4)
    self.assertEqual(cls().Train().image_size, 480)
    self.assertEqual(cls().Train().num_classes, num_classes)
    heads = transfer.Heads(params)
    self.assertEqual([c.num_classes for c in heads], [num_classes] * 2)

  def testAllOfTheTableAreThere(self):
    self.assertLen(_MODELS, 7)

  def testOnlyTheClassifiersAreNew(self):
    """All other variables are those of ImageNet's model, by path and shape."""
    paths = []
    for name in ('image.imagenet.AmoebaNetB18x512', 'image.transfer.Cifar10'):
      net = registry.GetParams(name).Instantiate().net
      paths.append(
        {s.path: s.shape for s in tf.nest.flatten(net.VariableSpecs())}
      )
    theirs, ours = paths
    self.assertEqual(ours.keys(), theirs.keys())
    differing = [path for path in ours if ours[path] != theirs[path]]
    self.assertCountEqual(
      differing,
      [
        f'image/net/{head}/dense/{name}'
        for head in ('auxiliary_head', 'head')
        for name in ('w', 'b')
      ],
    )
    params = registry.GetParams('image.transfer.Cifar10')
    self.assertEqual(
      params.train.init_from.exclude,
      ['auxiliary_head/dense/.*', 'head/dense/.*'],
    )


if __name__ == '__main__':
  absltest.main()
