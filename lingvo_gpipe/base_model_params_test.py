"""Tests of base_model_params."""

from __future__ import annotations

from absl.testing import absltest

from lingvo_gpipe import base_model_params, hyperparams


class Thing:
  @classmethod
  def Params(cls):
    p = hyperparams.InstantiableParams(cls)
    p.Define('name', '', '')
    return p


class Model(base_model_params.SingleTaskModelParams):
  def Train(self):
    return Thing.Params().Set(name='train')

  def Test(self):
    return Thing.Params().Set(name='test')

  def Task(self):
    return Thing.Params().Set(name='task')

  def Helper(self):
    return 3

  @base_model_params.Dataset
  def TestLarge(self):
    return Thing.Params().Set(name='large')


class Small(Model):
  def TestLarge(self):  # Overrides a dataset, so it is one.
    return Thing.Params().Set(name='smaller')

  def Dev(self):
    return 'not params'


class Parts(base_model_params.SplitModelParams):
  def Input(self, split):
    p = Thing.Params().Set(name=split)
    p.Define('training', False, '')
    return p


class BaseModelParamsTest(absltest.TestCase):
  def testSplits(self):
    model = Parts()
    self.assertEqual(model.GetDatasetNames(), ['Train', 'Dev', 'Test'])
    for name in model.GetDatasetNames():
      params = model.GetDatasetParams(name)
      self.assertEqual(params.name, name.lower())
      self.assertEqual(params.training, name == 'Train')

  def testDatasetNames(self):
    self.assertEqual(Model().GetDatasetNames(), ['Train', 'Test', 'TestLarge'])
    self.assertEqual(
      Small().GetDatasetNames(), ['Train', 'Dev', 'Test', 'TestLarge']
    )
    base = base_model_params.SingleTaskModelParams()
    self.assertEqual(base.GetDatasetNames(), [])

  def testDatasets(self):
    self.assertEqual(Model().GetDatasetParams('Train').name, 'train')
    self.assertEqual(Model().GetDatasetParams('TestLarge').name, 'large')
    self.assertEqual(Small().GetDatasetParams('TestLarge').name, 'smaller')

  def testUnknownDatasets(self):
    for name, message in (
      (
        'Dev',
        "Model has no dataset 'Dev'; it has: Train, Test, TestLarge; define "
        'the method Dev to add it',
      ),
      (
        'Helper',
        "Model has no dataset 'Helper'; it has: Train, Test, TestLarge; mark "
        'the method Helper with @base_model_params.Dataset',
      ),
      ('Task', "Model has no dataset 'Task'; it has: Train, Test, TestLarge"),
      ('x', "Model has no dataset 'x'; it has: Train, Test, TestLarge"),
    ):
      with self.assertRaises(base_model_params.DatasetError) as caught:
        Model().GetDatasetParams(name)
      self.assertEqual(str(caught.exception), message)

  def testModelIsACopyOfTheTask(self):
    class Fixed(Model):
      TASK = Thing.Params().Set(name='fixed').Freeze()

      def Task(self):
        return self.TASK

    params = Fixed().Model()
    params.name = 'x'
    self.assertEqual(Fixed.TASK.name, 'fixed')

  def testOnlyParamsAreReturned(self):
    with self.assertRaisesRegex(
      TypeError, r'^Small.Dev\(\) must return Params, such as .*, not str$'
    ):
      Small().GetDatasetParams('Dev')
    with self.assertRaisesRegex(NotImplementedError, 'define it to return'):
      base_model_params.SingleTaskModelParams().Model()


if __name__ == '__main__':
  absltest.main()
