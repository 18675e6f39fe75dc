"""Tests of the programs of other frameworks, where these are installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from absl.testing import absltest

from tools.benchmarks import (
  frameworks,
  peer_process,
  peer_setup,
  pipeline,
  plain_training,
  stack_sizes,
)

_SIZES = stack_sizes.Sizes(3, 16, 32, 2, 8, 8)
_LEARNING_RATE = 0.1


def Python(framework: frameworks.Framework) -> str:
  """The interpreter to try: that of TORCH_PYTHON, LINGVO_PYTHON, or this."""
  variables = {'PyTorch': 'TORCH_PYTHON', 'Lingvo': 'LINGVO_PYTHON'}
  return os.environ.get(variables[framework.name], sys.executable)


def CheckTraining(
  test: absltest.TestCase,
  framework: frameworks.Framework,
  configs: Sequence[pipeline.Config],
) -> None:
  """Trains three steps and compares the losses; skips what isn't there.

  Args:
    test: the test.
    framework: to be tested.
    configs: with the same number of devices.
  """
  python = Python(framework)
  if not peer_process.CanImport(python, framework.module):
    test.skipTest(f'{python} cannot import {framework.module}')
  expected = plain_training.Losses(_SIZES, 3, _LEARNING_RATE)
  folder = test.create_tempdir().full_path
  peer_setup.WriteArrays(folder, _SIZES)
  with frameworks.Start(
    framework,
    python,
    configs,
    _SIZES,
    folder=folder,
    learning_rate=_LEARNING_RATE,
  ) as processes:
    processes.WaitUntilReady()
    test.assertNotEmpty(processes.version)
    for config in configs:
      losses = [processes.Step(config.name) for _ in range(3)]
      for found, loss in zip(losses, expected, strict=True):
        test.assertAlmostEqual(found / loss, 1.0, 5, config.name)
