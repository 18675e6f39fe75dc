"""Tests of model_loader; its messages are shown by trainer_error_test."""

import sys

from absl.testing import absltest

from lingvo_gpipe import trainer_process, user_error
from lingvo_gpipe.jobs import flags, model_loader

_TINY = f'{trainer_process.MODELS}.Tiny'


def _Load(model=_TINY, **options):
  return model_loader.Load(flags.Options(model=model, **options))


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
