"""Tests of registry."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
import textwrap
from unittest import mock

from absl.testing import absltest

from lingvo_gpipe import base_model_params, hyperparams, registry

_HEAD = """\
from lingvo_gpipe import base_model_params, hyperparams, registry
"""
_MODEL = """\
@registry.RegisterSingleTaskModel
class {name}(base_model_params.SingleTaskModelParams):
  '''The model {name}.

  More about it.
  '''

  def Train(self):
    p = hyperparams.Params()
    p.Define('batch_size', 8, '')
    return p

  def Task(self):
    p = hyperparams.Params()
    p.Define('name', '{name}', '')
    p.Define('input', None, '')
    p.Define('model', '', '')
    return p
"""


def _Model(name):
  return _HEAD + _MODEL.format(name=name)


class _TestCase(absltest.TestCase):
  """Each test has a folder of packages and a registry of its own."""

  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    modules = {
      name: module
      for name, module in sys.modules.items()
      if name.partition('.')[0] != 'params'
    }
    for patch in (
      mock.patch.dict(registry._models, clear=True),
      mock.patch.object(sys, 'path', [str(self.root), *sys.path]),
      mock.patch.dict(sys.modules, modules, clear=True),
    ):
      patch.start()
      self.addCleanup(patch.stop)
    sys.dont_write_bytecode = True  # Files change within a second.
    self.Write('params/__init__.py', '')
    self.Write('params/image/__init__.py', '')
    self.Write(
      'params/image/digits.py', _Model('Digits') + _MODEL.format(name='Small')
    )

  def Write(self, path, text):
    file = self.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    importlib.invalidate_caches()
    return file

  def assertUnknown(self, name, text):
    with self.assertRaises(registry.UnknownModelError) as caught:
      registry.GetClass(name)
    self.assertIn(text, str(caught.exception))


class RegisterTest(_TestCase):
  def testKeyIsThePath(self):
    @registry.RegisterSingleTaskModel
    class Local(base_model_params.SingleTaskModelParams):
      pass

    name = f'{__name__}.Local'
    self.assertEqual(registry.AllNames(), [name])
    self.assertIs(registry.GetClass(name), Local)
    self.assertRegex(registry.GetSource(name), r'registry_test\.py:\d+$')

  def testWrongBaseClass(self):
    for thing in (int, hyperparams.Params, 3, lambda: 3):
      with self.assertRaisesRegex(TypeError, 'not a subclass of base_model'):
        registry.RegisterSingleTaskModel(thing)

  def testTwoOfOneName(self):
    file = self.Write('mine.py', _Model('A') + '\n' + _MODEL.format(name='A'))
    with self.assertRaises(ValueError) as caught:
      registry.ImportModules(['mine'])
    self.assertRegex(
      str(caught.exception),
      rf"^two models are called 'mine.A': at {file}:\d+ and at {file}:\d+; "
      'rename one of them$',
    )

  def testParamsAndItsOwnNameMeet(self):
    self.Write('image/__init__.py', '')
    file = self.Write('image/digits.py', _Model('Digits'))
    registry.ImportModules(['image.digits'])
    with self.assertRaisesRegex(ValueError, f'{file}:.*digits.py:'):
      registry.ImportModules(['params.image.digits'])

  def testAgainFromTheSameFile(self):
    registry.ImportModules(['params.image.digits'])
    first = registry.GetClass('image.digits.Digits')
    importlib.reload(sys.modules['params.image.digits'])
    self.assertIsNot(registry.GetClass('image.digits.Digits'), first)

  def testTypedAgain(self):
    for blank_lines in ('', '\n\n'):
      code = compile(blank_lines + _Model('Typed'), '<stdin>', 'exec')
      exec(code, {'__name__': '__main__'})
    self.assertEqual(registry.AllNames(), ['__main__.Typed'])


class FindTest(_TestCase):
  def testImportsOnlyWhatIsNeeded(self):
    self.Write('params/image/other.py', 'raise RuntimeError("not me")')
    self.assertEqual(
      registry.GetClass('image.digits.Digits').__name__, 'Digits'
    )
    self.assertEqual(
      registry.AllNames(), ['image.digits.Digits', 'image.digits.Small']
    )

  def testWithParamsInFront(self):
    self.assertIs(
      registry.GetClass('params.image.digits.Digits'),
      registry.GetClass('image.digits.Digits'),
    )

  def testOwnPackage(self):
    self.Write('my_pkg/__init__.py', '')
    self.Write('my_pkg/models.py', _Model('Mine'))
    self.assertTrue(registry.ImportParams('my_pkg.models.Mine'))
    self.assertEqual(registry.GetParams('my_pkg.models.Mine').name, 'Mine')

  def testCurrentDirectory(self):
    folder = self.create_tempdir().full_path
    (pathlib.Path(folder) / 'here.py').write_text(_Model('Mine'))
    self.assertFalse(registry.ImportParams('here.Mine'))
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(folder)
    self.assertTrue(registry.ImportParams('here.Mine'))

  def testDirectoryOfBazelRun(self):
    folder = self.create_tempdir().full_path
    (pathlib.Path(folder) / 'there.py').write_text(_Model('Mine'))
    with mock.patch.dict(os.environ, BUILD_WORKING_DIRECTORY=folder):
      self.assertTrue(registry.ImportParams('there.Mine'))

  def testImportModules(self):
    self.Write('my_models.py', _Model('Mine'))
    registry.ImportModules(['my_models', 'my_models'])
    self.assertEqual(registry.AllNames(), ['my_models.Mine'])
    with self.assertRaisesRegex(
      ModuleNotFoundError, "no module 'not_there', neither installed nor below"
    ):
      registry.ImportModules(['not_there'])

  def testErrorsOfTheModuleSurface(self):
    self.Write('params/image/bad.py', 'import not_installed_here\n')
    with self.assertRaises(ModuleNotFoundError) as caught:
      registry.GetClass('image.bad.Model')
    self.assertEqual(caught.exception.name, 'not_installed_here')
    self.Write('params/image/worse.py', 'from params.image import nothing\n')
    with self.assertRaisesRegex(ImportError, 'nothing'):
      registry.GetClass('image.worse.Model')
    self.Write('params/image/worst.py', 'x = = 3\n')
    with self.assertRaises(SyntaxError):
      registry.GetClass('image.worst.Model')


class UnknownTest(_TestCase):
  def testNearNamesWithoutAnyImportBefore(self):
    self.assertUnknown(
      'image.digits.Digist', "did you mean 'image.digits.Digits'"
    )

  def testNearNamesOfOtherModules(self):
    for name in ('image.digit.Digits', 'Digits', 'digits.digits', 'img.Digits'):
      self.assertUnknown(name, "did you mean 'image.digits.Digits'")

  def testNothingNear(self):
    self.assertUnknown(
      'zzz',
      "no model is called 'zzz'; the models are: image.digits.Digits, "
      'image.digits.Small',
    )
    for name in ('', '.', 'a b.c', '3.x', 'image.digits.'):
      self.assertUnknown(name, f'no model is called {name!r}')

  def testForgottenDecorator(self):
    self.Write('mine.py', 'class Plain: pass')
    self.assertUnknown(
      'mine.Plain',
      'the module mine exists: its models need the decorator '
      '@registry.RegisterSingleTaskModel',
    )

  def testBrokenModulesAreNamed(self):
    self.Write('params/broken.py', '1 / 0')
    self.Write('params/sub/__init__.py', 'raise ValueError("no good")')
    self.Write('params/ignored_test.py', 'raise ValueError("never imported")')
    with self.assertRaises(registry.UnknownModelError) as caught:
      registry.GetClass('image.digits.Digist')
    text = str(caught.exception)
    self.assertIn("did you mean 'image.digits.Digits'", text)
    self.assertIn('params.broken: division by zero', text)
    self.assertIn('params.sub: no good', text)
    self.assertNotIn('ignored_test', text)

  def testKindOfError(self):
    self.assertTrue(issubclass(registry.UnknownModelError, ValueError))
    self.assertTrue(issubclass(registry.UnknownModelError, LookupError))

  def testWithoutAnyParams(self):
    sys.path.remove(str(self.root))
    with mock.patch.object(registry, '_PARAMS_PACKAGE', 'no_such_package'):
      self.assertUnknown('a.B', "'a.B'; there are no models")
      self.assertEqual(registry.ListModels(), [])


class ParamsTest(_TestCase):
  def testParamsOfADataset(self):
    p = registry.GetParams('image.digits.Digits', 'Train')
    self.assertEqual((p.name, p.input.batch_size), ('Digits', 8))
    self.assertRegex(
      p.model, r'^image\.digits\.Digits \(.*params/image/digits\.py:\d+\)$'
    )
    self.assertIsNone(registry.GetParams('image.digits.Digits').input)

  def testUnknownDataset(self):
    with self.assertRaisesRegex(
      base_model_params.DatasetError, "has no dataset 'Dev'; it has: Train;"
    ):
      registry.GetParams('image.digits.Digits', 'Dev')

  def testListModels(self):
    models = registry.ListModels()
    self.assertEqual(
      [m.name for m in models], ['image.digits.Digits', 'image.digits.Small']
    )
    self.assertEqual(models[1].summary, 'The model Small.')
    self.assertRegex(models[1].source, r'digits\.py:\d+$')
    self.assertEqual(models[1].cls.__name__, 'Small')


if __name__ == '__main__':
  absltest.main()
