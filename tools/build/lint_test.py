"""The form of the source tree: ruff, BUILD targets, tests beside modules.

Bazel shows a test only the files it depends on. This one reads the source tree
itself, which it finds through the link to WORKSPACE, so that a file nobody has
declared cannot escape.
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from absl.testing import absltest

_ROOT = pathlib.Path('WORKSPACE').resolve().parent
_SOURCE_DIRS = ('docs', 'lingvo_gpipe', 'params', 'tasks', 'tools')

# Modules without an x_test.py beside them, and what tests them. Helpers that
# only tests use need none: their target says `testonly = True`.
_TESTED_ELSEWHERE = {
  'lingvo_gpipe/base_decoder.py': 'lingvo_gpipe/jobs/decoder_job_test.py',
  'lingvo_gpipe/command_line.py': 'lingvo_gpipe/trainer_error_test.py',
  'lingvo_gpipe/config/params_values.py': 'lingvo_gpipe/hyperparams_test.py',
  'lingvo_gpipe/gpipe/segment.py': (
    'lingvo_gpipe/gpipe/stage_functions_test.py'
  ),
  'lingvo_gpipe/gpipe/forward_loop.py': (
    'lingvo_gpipe/gpipe/gpipe_equality_test.py'
  ),
  'lingvo_gpipe/gpipe/shared_weights.py': (
    'lingvo_gpipe/gpipe/connected_cells_test.py'
  ),
  'lingvo_gpipe/gpipe/subgraph.py': (
    'lingvo_gpipe/gpipe/stage_functions_test.py'
  ),
  'lingvo_gpipe/gpipe/failure.py': 'lingvo_gpipe/gpipe/gpipe_test.py',
  'lingvo_gpipe/gpipe/loop_data.py': 'lingvo_gpipe/gpipe/loop_test.py',
  'lingvo_gpipe/gpipe/reduction.py': 'lingvo_gpipe/gpipe/gpipe_test.py',
  'lingvo_gpipe/gpipe/gpipe_params.py': 'lingvo_gpipe/gpipe/gpipe_test.py',
  'lingvo_gpipe/jobs/checkpoint_follower.py': (
    'lingvo_gpipe/jobs/evaler_job_test.py'
  ),
  'lingvo_gpipe/jobs/checkpoint_job.py': 'lingvo_gpipe/jobs/evaler_job_test.py',
  'lingvo_gpipe/jobs/checkpoint_jobs.py': 'lingvo_gpipe/trainer_jobs_test.py',
  'lingvo_gpipe/jobs/operation_flags.py': 'lingvo_gpipe/jobs/flags_test.py',
  'lingvo_gpipe/jobs/run_job.py': 'lingvo_gpipe/trainer_cluster_test.py',
  'lingvo_gpipe/jobs/trainer_job.py': 'lingvo_gpipe/trainer_test.py',
  'lingvo_gpipe/layers/keras_config.py': (
    'lingvo_gpipe/layers/keras_layer_test.py'
  ),
  'lingvo_gpipe/layers/tied_table.py': 'lingvo_gpipe/layers/embedding_test.py',
  'lingvo_gpipe/workers/worker_lost.py': (
    'lingvo_gpipe/workers/remote_workers_test.py'
  ),
  'tools/benchmarks/memory_search.py': (
    'tools/benchmarks/pipeline_memory_test.py'
  ),
  'tools/benchmarks/paper/measured_steps.py': (
    'tools/benchmarks/table_2/table_2_test.py'
  ),
  'tools/benchmarks/paper/paper_model.py': (
    'tools/benchmarks/table_2/table_2_test.py'
  ),
  'tools/benchmarks/paper/stack_costs.py': (
    'tools/benchmarks/table_2/table_2_test.py'
  ),
  'tools/benchmarks/fault_processes.py': (
    'tools/benchmarks/fault_injection_test.py'
  ),
  'tools/plan/__main__.py': 'tools/plan/plan_test.py',
  'tools/plan/check.py': 'tools/plan/check_runs_test.py',
  'tasks/mt/translation_task.py': 'tools/mt/translate_test.py',
  'tools/mt/translation_model.py': 'tools/mt/translate_test.py',
  'tasks/mt/transformer_cells.py': 'tasks/mt/transformer_test.py',
  'tools/launcher/__main__.py': 'tools/bazelw_test.py',
  'tools/baselines/__main__.py': 'tools/baselines/baselines_test.py',
  'tools/benchmarks/image_training.py': (
    'tools/benchmarks/keras_resnet_test.py'
  ),
  'tools/classify/__main__.py': 'tools/classify/classify_test.py',
  'tools/export/__main__.py': 'tools/export/export_test.py',
}

# Folders that are one tool, whose test runs it from the flags to the picture.
_TESTED_AS_A_WHOLE = {
  f'tools/benchmarks/{name}': f'tools/benchmarks/{name}/{name}_test.py'
  for name in (
    'overhead',
    'table_1',
    'table_2',
    'table_3',
    'table_5',
    'translation_training',
  )
} | {'tools/fuzz': 'tools/fuzz/fuzz_test.py'}


def _Sources(pattern: str) -> Iterator[pathlib.Path]:
  """Files of the source tree, as paths from its root."""
  for folder in _SOURCE_DIRS:
    for path in sorted((_ROOT / folder).rglob(pattern)):
      yield path.relative_to(_ROOT)


def _Modules() -> list[pathlib.Path]:
  return [x for x in _Sources('*.py') if x.name != '__init__.py']


def _Targets(build: pathlib.Path) -> Iterator[tuple[str, dict[str, ast.expr]]]:
  """Rule names and attributes of a BUILD file, which is Python syntax."""
  for node in ast.parse((_ROOT / build).read_text()).body:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
      rule = node.value.func
      if isinstance(rule, ast.Name):
        yield rule.id, {x.arg: x.value for x in node.value.keywords if x.arg}


@dataclasses.dataclass(frozen=True)
class Declaration:
  """How a BUILD file names a source file."""

  rule: str
  is_testonly: bool


def _Declarations(folder: pathlib.Path) -> dict[str, Declaration]:
  """File name -> declaration, for the srcs that a folder's BUILD spells out."""
  declared = {}
  build = folder / 'BUILD'
  if (_ROOT / build).exists():
    for rule, attributes in _Targets(build):
      if isinstance(attributes.get('srcs'), ast.List):
        for name in ast.literal_eval(attributes['srcs']):
          declared[name] = Declaration(rule, 'testonly' in attributes)
  return declared


class LintTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    # Else every check below would pass for want of files.
    self.assertIn(
      pathlib.Path('tools/build/lint_test.py'),
      _Modules(),
      f'{_ROOT} is not the source tree',
    )

  def _Ruff(self, *args: str) -> None:
    result = subprocess.run(
      [sys.executable, '-m', 'ruff', *args, '--no-cache', str(_ROOT)],
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual(
      result.returncode, 0, f'ruff {args[0]}:\n{result.stdout}{result.stderr}'
    )

  def testLint(self):
    self._Ruff('check', '--output-format=concise')

  def testFormat(self):
    self._Ruff('format', '--check')

  def testRuffSeesTheTree(self):
    result = subprocess.run(
      [
        sys.executable,
        '-m',
        'ruff',
        'check',
        '--no-cache',
        '--show-files',
        str(_ROOT),
      ],
      capture_output=True,
      text=True,
      check=True,
    )
    seen = {pathlib.Path(x) for x in result.stdout.splitlines()}
    self.assertContainsSubset({_ROOT / x for x in _Modules()}, seen)


class BuildFilesTest(absltest.TestCase):
  def testEveryModuleHasATarget(self):
    """In particular no test can lie there without ever being run."""
    missing = []
    for path in _Modules():
      declared = _Declarations(path.parent).get(path.name)
      is_test = path.name.endswith('_test.py')
      if declared is None or is_test != declared.rule.endswith('_test'):
        missing.append(f'{path}: {declared.rule if declared else "nowhere"}')
    self.assertEmpty(
      missing,
      'name these files in `srcs` of an lg_py_test, lg_py_library or '
      'lg_py_binary in the BUILD beside them',
    )

  def testRulesAreTheProjectsOwn(self):
    wrong = [
      f'{build}: {rule}'
      for build in _Sources('BUILD')
      for rule, _ in _Targets(build)
      if rule.startswith('py_')
    ]
    self.assertEmpty(wrong, 'use lg_py_* of //tools/build:defs.bzl')

  def testTargetsAreNamedAfterTheirFile(self):
    wrong = []
    for build in _Sources('BUILD'):
      for rule, attributes in _Targets(build):
        if rule == 'lg_py_test':
          name = ast.literal_eval(attributes['name'])
          sources = ast.literal_eval(attributes['srcs'])
          if f'{name}.py' not in sources:
            wrong.append(f'{build}: {name} of {sources}')
    self.assertEmpty(wrong)


def _Test(path: pathlib.Path) -> str | None:
  """What tests a module that has no test beside it."""
  return _TESTED_ELSEWHERE.get(str(path)) or _TESTED_AS_A_WHOLE.get(
    str(path.parent)
  )


class ModulesTest(absltest.TestCase):
  def testEveryModuleHasATestBesideIt(self):
    missing = []
    for path in _Modules():
      declared = _Declarations(path.parent).get(path.name)
      if not (
        path.name.endswith('_test.py')
        or (_ROOT / path.with_name(f'{path.stem}_test.py')).exists()
        or (declared and declared.is_testonly)
        or _Test(path)
      ):
        missing.append(str(path))
    self.assertEmpty(
      missing,
      'write <module>_test.py, or say in _TESTED_ELSEWHERE what tests them',
    )

  def testExceptionsAreNeeded(self):
    for path, test in (_TESTED_ELSEWHERE | _TESTED_AS_A_WHOLE).items():
      self.assertTrue((_ROOT / path).exists(), path)
      self.assertTrue((_ROOT / test).exists(), test)
    for path in _TESTED_ELSEWHERE:
      beside = path.replace('.py', '_test.py')
      self.assertFalse((_ROOT / beside).exists(), f'{path} has its test')

  def testPackagesHoldADocstringOnly(self):
    """Bazel may put an empty file in the place of an __init__.py."""
    for path in _Sources('__init__.py'):
      body = ast.parse((_ROOT / path).read_text()).body
      self.assertLen(body, 1, path)
      self.assertIsInstance(body[0], ast.Expr, path)

  def testEveryFolderOfModulesIsAPackage(self):
    folders = {x.parent for x in _Modules() if not x.name.endswith('_test.py')}
    missing = [x for x in folders if not (_ROOT / x / '__init__.py').exists()]
    self.assertEmpty(missing, 'add an __init__.py with a docstring')


if __name__ == '__main__':
  absltest.main()
