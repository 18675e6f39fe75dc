"""Tests of the tool: the model, its weights on the other side, errors."""

import numpy as np
from absl.testing import absltest, parameterized

from tools.benchmarks import (
  framework_checks,
  frameworks,
  peer_process,
  tool_process,
)
from tools.benchmarks.translation_training import model

_SIZES = model.Sizes(
  num_layers=2,
  dim=8,
  hidden_dim=16,
  num_heads=2,
  vocab_size=11,
  batch=4,
  time=6,
)


def _Ours(batch):
  return model.Ours(
    _SIZES,
    batch,
    ['/device:CPU:0'],
    num_micro_batches=1,
    rematerialize='none',
  )


class ModelTest(absltest.TestCase):
  def testBatch(self):
    batch = model.Batch(_SIZES)
    lengths = _SIZES.time - batch['target_paddings'].sum(1)
    self.assertEqual(model.Tokens(batch), lengths.sum())
    self.assertGreaterEqual(lengths.min(), _SIZES.time // 2)
    # Padding is at the end.
    self.assertTrue((np.diff(batch['target_paddings']) >= 0).all())

  def testAssign(self):
    batch = model.Batch(_SIZES)
    first, second = _Ours(batch), _Ours(batch)
    losses = [first.Step() for _ in range(2)]
    second.Assign(first)
    self.assertLess(losses[1], losses[0])
    self.assertAlmostEqual(second.Step(), first.Step(), 5)

  def testWeightsAreThoseOfPyTorch(self):
    """Names and shapes, as nn.Transformer's documentation has them."""
    weights = _Ours(model.Batch(_SIZES)).Weights()
    expected = {'table': (11, 8), 'bias': (11,)}

    def _Layer(name, attentions, norms):
      for attention in attentions:
        expected[f'{name}.{attention}.in_proj_weight'] = (24, 8)
        expected[f'{name}.{attention}.in_proj_bias'] = (24,)
        expected[f'{name}.{attention}.out_proj.weight'] = (8, 8)
        expected[f'{name}.{attention}.out_proj.bias'] = (8,)
      expected[f'{name}.linear1.weight'] = (16, 8)
      expected[f'{name}.linear1.bias'] = (16,)
      expected[f'{name}.linear2.weight'] = (8, 16)
      expected[f'{name}.linear2.bias'] = (8,)
      for norm in norms:
        expected[f'{name}.{norm}.weight'] = (8,)
        expected[f'{name}.{norm}.bias'] = (8,)

    for i in range(2):
      _Layer(f'encoder.layers.{i}', ['self_attn'], ['norm1', 'norm2'])
      _Layer(
        f'decoder.layers.{i}',
        ['self_attn', 'multihead_attn'],
        ['norm1', 'norm2', 'norm3'],
      )
    for side in ('encoder', 'decoder'):
      expected[f'{side}.norm.weight'] = (8,)
      expected[f'{side}.norm.bias'] = (8,)
    self.assertEqual({k: v.shape for k, v in weights.items()}, expected)

  def testPyTorchTrainsTheSame(self):
    python = framework_checks.Python(frameworks.TORCH)
    if not peer_process.CanImport(python, 'torch.nn'):
      self.skipTest(f'{python} cannot import torch')
    batch = model.Batch(_SIZES)
    ours = _Ours(batch)
    with model.Torch(
      python,
      _SIZES,
      batch,
      ours.Weights(),
      folder=self.create_tempdir().full_path,
      core=0,
    ) as torch:
      torch.WaitUntilReady()
      for _ in range(3):
        self.assertAlmostEqual(torch.Step('step') / ours.Step(), 1.0, 5)


class ToolTest(parameterized.TestCase):
  def testPrintsATable(self):
    done = tool_process.Run(
      'translation_training',
      '--layers=1',
      '--dim=8',
      '--hidden_dim=16',
      '--heads=2',
      '--vocab_size=11',
      '--batch=4',
      '--time=6',
      '--micro_batches=2',
      '--workers=1',
      '--rounds=1',
      '--torch_python=/nowhere/python',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('/nowhere/python cannot import it', done.stderr)
    heading, *rows = done.stdout.splitlines()
    self.assertIn('tokens/s', heading)
    self.assertLen(rows, 3)

  @parameterized.parameters(
    (['--dim=9', '--heads=3'], '--dim=9 must be even'),
    (['--dim=10', '--heads=4'], 'a multiple of --heads=4'),
    (['--batch=6', '--micro_batches=4'], '--batch=6 is not divisible'),
  )
  def testBadFlags(self, args, expected):
    done = tool_process.Run('translation_training', *args)
    self.assertEqual(done.returncode, 2)
    self.assertIn(expected, done.stderr)


if __name__ == '__main__':
  absltest.main()
