"""Tests of model_loader; its messages are shown by trainer_error_test."""

import sys
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import trainer_process, trainer_test_models, user_error
from lingvo_gpipe.jobs import flags, model_loader

_TINY = f'{trainer_process.MODELS}.Tiny'


def _Load(model=_TINY, **options):
  return model_loader.Load(flags.Options(model=model, **options))


_points_params = trainer_test_models.Points.Params


def _DataDir():
  """Params of Points with a data_dir."""
  p = _points_params()
  p.Define('data_dir', '/default', 'Where the data is.')
  return p


class ModelLoaderTest(absltest.TestCase):
  def testWithoutFlagsTheModelIsAsRegistered(self):
    model = _Load()
    self.assertEqual(model.name, _TINY)
    self.assertRegex(model.source, r'trainer_test_models.py:\d+$')
    self.assertEqual(model.num_partitions, 1)
    self.assertEqual(model.params.net.num_micro_batches, 4)
    self.assertTrue(model.params.input.training)
    self.assertEqual(model.params.model, f'{_TINY} ({model.source})')
    self.assertEqual(list(model.eval_inputs), ['dev', 'test'])
    self.assertEqual(model.eval_inputs['test'].points_seed, 9)

  def testFlags(self):
    p = _Load(
      num_partitions=3, num_micro_batches=8, max_steps=5, save_max_to_keep=2
    ).params
    self.assertEqual(p.net.num_partitions, 3)
    self.assertEqual(p.net.num_micro_batches, 8)
    self.assertEqual(p.train.max_steps, 5)
    self.assertEqual(p.train.save_max_to_keep, 2)

  def testAPartitionForEachWorker(self):
    self.assertEqual(_Load(local_workers=3).num_partitions, 3)
    splits = 'net.splits=[1, 3]'
    with self.assertRaisesRegex(user_error.UserError, 'makes 2 partitions'):
      _Load(local_workers=3, model_params_override=splits).Instantiate()
    model = _Load(local_workers=2, model_params_override=splits)
    self.assertEqual(model.num_partitions, 2)

  def testFlagsReplaceAnotherWayToSayTheSame(self):
    override = 'net.splits=[1, 3]; net.micro_batch_size=2'
    with self.assertRaisesRegex(user_error.UserError, 'does not fit'):
      _Load(model_params_override=override).Instantiate()  # M by the model.
    override += '; net.num_micro_batches=None'
    model = _Load(model_params_override=override)
    self.assertEqual(model.num_partitions, 2)
    model.Instantiate()

  def testSplitsMayNameCellsByTheirPlace(self):
    override = 'net.cells[1].name=""; net.splits=["cells_001", "classify"]'
    model = _Load(model_params_override=override)
    self.assertEqual(model.num_partitions, 2)

  def testOverrideReachesEveryDataset(self):
    model = _Load(model_params_override='input.batch_size=8')
    inputs = model_loader.Inputs(model)
    self.assertEqual(
      {k: v.params.batch_size for k, v in inputs.items()},
      {'train': 8, 'dev': 8, 'test': 8},
    )
    self.assertEqual(model.params.train.max_steps, 30)

  def testCheckpointToStartFrom(self):
    p = _Load(init_checkpoint='/runs/a').params
    self.assertEqual(p.train.init_from.checkpoint, '/runs/a')
    with self.assertRaisesRegex(user_error.UserError, '^--init_checkpoint=/r'):
      _Load(
        init_checkpoint='/runs/a',
        model_params_override='train.init_from.checkpoint=/runs/b',
      )

  def testDataDirOfInputsThatHaveNone(self):
    with self.assertRaisesRegex(
      user_error.UserError, r'^--data_dir=/x has nothing to set: no input of'
    ):
      _Load(data_dir='/x')

  def testDataDirReachesEveryDatasetAndReplacedClasses(self):
    with mock.patch.object(trainer_test_models.Points, 'Params', _DataDir):
      model = _Load(data_dir='/x', model_params_override='input.data_dir=""')
    for p in (model.params.input, *model.eval_inputs.values()):
      self.assertEqual(p.data_dir, '/x')

  def testModelsMayCompleteTheirParams(self):
    """After flags and overrides, once for each dataset."""
    seen = []

    def _Complete(unused_self, params):
      seen.append((params.input.training, params.train.max_steps))
      params.train.max_steps += params.input.batch_size
      if params.input.batch_size == 5:
        raise ValueError('five is no size')

    with mock.patch.object(trainer_test_models.Tiny, 'Complete', _Complete):
      model = _Load(max_steps=7, model_params_override='input.batch_size=4')
      self.assertEqual(seen, [(True, 7), (False, 7), (False, 7)])
      self.assertEqual(model.params.train.max_steps, 11)
      with self.assertRaisesRegex(user_error.UserError, '^five is no size$'):
        _Load(model_params_override='input.batch_size=5')

  def _InputsWithSizes(self, sizes, **options):
    """Inputs of a model whose mini-batches come in several shapes."""
    model = _Load(**options)
    spec = model.Instantiate(model.params.input).BatchSpec()
    specs = [
      spec.Transform(lambda x, n=n: tf.TensorSpec([n, *x.shape[1:]], x.dtype))
      for n in sizes
    ]
    with mock.patch.object(
      trainer_test_models.Points, 'BatchSpecs', return_value=specs
    ):
      return model_loader.Inputs(model)

  def testEveryShapeOfMiniBatchesFits(self):
    self._InputsWithSizes([16, 8, 12])
    with self.assertRaisesRegex(
      user_error.UserError,
      '^train data: mini-batch 10 is not divisible into num_micro_batches=4',
    ):
      self._InputsWithSizes([16, 10])

  def testTooManyShapesOfMiniBatches(self):
    two = 'net.max_batch_shapes=2'
    # Three shapes, but two kinds of micro-batches.
    self._InputsWithSizes([16, 8, 16], model_params_override=two)
    with self.assertRaisesRegex(
      user_error.UserError,
      '^train data: .* in 3 shapes, more than net.max_batch_shapes=2',
    ):
      self._InputsWithSizes([16, 8, 12], model_params_override=two)
    # What is filled up is a kind of its own.
    padded = f'{two}; net.pad_batches=True'
    self._InputsWithSizes([16, 15], model_params_override=padded)
    with self.assertRaisesRegex(user_error.UserError, 'in 3 shapes'):
      self._InputsWithSizes([16, 15, 14], model_params_override=padded)

  def testModelWithoutTestData(self):
    model = _Load(model=f'{trainer_process.MODELS}.Wide')
    self.assertEqual(list(model.eval_inputs), ['dev'])

  def testImpossibleInput(self):
    model = _Load(model_params_override='input.batch_size=0')
    with self.assertRaisesRegex(user_error.UserError, 'batch_size=0 must be'):
      model_loader.Inputs(model)

  def testModuleThatFailsKeepsItsError(self):
    folder = self.create_tempdir()
    folder.create_file('broken_models.py', 'import no_such_package\n')
    sys.path.append(folder.full_path)
    self.addCleanup(sys.path.remove, folder.full_path)
    with self.assertRaises(ModuleNotFoundError) as caught:
      _Load(imports=('broken_models',))
    self.assertEqual(caught.exception.name, 'no_such_package')


if __name__ == '__main__':
  absltest.main()
