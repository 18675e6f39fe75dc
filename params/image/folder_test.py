"""Tests of folder: trees of pictures from start to a fine-tuned model."""

import tensorflow as tf

from lingvo_gpipe.jobs import flags, model_loader
from lingvo_gpipe.train import checkpoint
from tasks.image import test_pictures

_SMALL = 'image.folder.AmoebaNetSmall'


def _Counts(*classes):
  """Numbers of pictures of folders."""
  return {f'train/{c}': 17 for c in classes} | {f'val/{c}': 2 for c in classes}


class FolderTest(tf.test.TestCase):
  def _Folder(self, name, counts):
    folder = self.create_tempdir(name).full_path
    test_pictures.MakeFolder(folder, counts)
    return folder

  def testNumberOfClassesIsThatOfTheFolders(self):
    folder = self._Folder('data', _Counts('ape', 'bee', 'cat'))
    for name in (_SMALL, 'image.folder.ResNet50'):
      model = model_loader.Load(
        flags.Options(model=name, logdir='unused', data_dir=folder)
      )
      self.assertEqual(model.params.input.num_classes, 3)
      self.assertEqual(model.eval_inputs['dev'].num_classes, 3)
      self.assertEqual(model.params.net.cells[-1].num_classes, 3)

  def _Task(self, data_dir, **options):
    model = model_loader.Load(
      flags.Options(model=_SMALL, logdir='unused', data_dir=data_dir, **options)
    )
    task = model.Instantiate()
    task.Plan(model.params.input.Instantiate().BatchSpec(), ['/device:CPU:0'])
    task.InstantiateVariables()
    return task

  def testFineTuning(self):
    three = self._Task(self._Folder('three', _Counts('a', 'b', 'c')))
    first = self.create_tempdir('first').full_path
    checkpoint.Checkpointer(first, three.variables_for_checkpoint).Save(7)
    two = self._Task(
      self._Folder('two', _Counts('y', 'z')), init_checkpoint=first
    )
    for variable in two.weights.values():
      variable.assign(variable + 1.0)
    plan = two.init_from.Plan(two.VariableSpecs())
    two.InitFrom(plan)
    new = ['emoji/net/head/dense/b', 'emoji/net/head/dense/w']
    self.assertCountEqual(plan.random, new)
    for path, variable in two.weights.items():
      if path in new:
        self.assertEqual(variable.shape[-1], 2)
      else:
        self.assertAllEqual(variable, three.weights[path])


if __name__ == '__main__':
  tf.test.main()
