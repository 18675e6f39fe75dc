"""What must hold for every registered model; no variables are made."""

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe import registry, user_error
from lingvo_gpipe.gpipe import placement

# Their data comes with a package of requirements.txt.
_WITH_DATA = ('image.digits.', 'image.emoji.', 'lm.small.')

# Theirs is prepared on first use, as tasks/mt/django_input_test.py tries.
_PREPARED = ('mt.django.',)

# Parameters of models whose every cut can be tried in a test.
_SMALL = 5e6


def _Models():
  """(name, its params class) of all models under params/."""
  return [(model.name, model.cls) for model in registry.ListModels()]


class RegisteredModelsTest(absltest.TestCase):
  def _ForAll(self, check):
    models = _Models()
    self.assertNotEmpty(models)
    for name, cls in models:
      with self.subTest(name):
        check(name, cls)

  def testTextRoundTrip(self):
    def _Check(name, unused_cls):
      params = registry.GetParams(name, 'Train')
      text = params.ToText()
      other = registry.GetParams(name, 'Train')
      other.random_seed = 12345
      self.assertNotEqual(other, params)
      self.assertEqual(other.FromText(text), params)
      self.assertEqual(other.ToText(), text)
      self.assertEqual(params.TextDiff(other), '')

    self._ForAll(_Check)

  def testCopiesAreEqualAndApart(self):
    def _Check(unused_name, cls):
      params = cls().Model()
      copy = params.Copy()
      params.Freeze()
      self.assertEqual(copy, params)
      copy.net.cells[0].name = 'renamed'
      self.assertNotEqual(copy, params)
      with self.assertRaises(TypeError):
        params.net.cells[0].name = 'renamed'

    self._ForAll(_Check)

  def testNamesOfVariablesAreUnique(self):
    def _Check(unused_name, cls):
      specs = tf.nest.flatten(cls().Model().Instantiate().VariableSpecs())
      paths = [spec.path for spec in specs]
      self.assertLen(set(paths), len(paths))

    self._ForAll(_Check)

  def testEveryNumberOfPartitionsUpTo4(self):
    placement.ConfigureLogicalCpus(4)

    def _Check(unused_name, cls):
      specs = tf.nest.flatten(cls().Model().Instantiate().VariableSpecs())
      if sum(s.size for s in specs) > _SMALL:
        return
      spec = cls().Train().Instantiate().BatchSpec()
      paths = []
      for k in range(1, 5):
        params = cls().Model()
        params.net.num_partitions = k
        task = params.Instantiate()
        plan = task.Plan(spec)
        self.assertLen(plan.stages, k)
        self.assertEqual(plan.stages[-1].end, len(params.net.cells))
        specs = tf.nest.flatten(task.VariableSpecs())
        paths.append([s.path for s in specs])
      # Names in checkpoints do not depend on K.
      self.assertTrue(all(p == paths[0] for p in paths))

    self._ForAll(_Check)

  def testInputsFitTheirSpecs(self):
    def _Check(name, cls):
      for dataset in cls().GetDatasetNames():
        inputs = cls().GetDatasetParams(dataset).Instantiate()
        spec = inputs.BatchSpec()
        if name.startswith(_PREPARED):
          continue
        if not name.startswith(_WITH_DATA):
          # One line says where to put the data.
          with self.assertRaisesRegex(user_error.UserError, '^.*data.*$'):
            inputs.Dataset(0)
          continue
        batch = next(iter(inputs.Dataset(0)))
        self.assertCountEqual(batch, spec)
        for field, tensor in batch.items():
          self.assertEqual((tensor.shape, tensor.dtype), _Form(spec[field]))

    self._ForAll(_Check)


def _Form(spec):
  return spec.shape, spec.dtype


if __name__ == '__main__':
  absltest.main()
