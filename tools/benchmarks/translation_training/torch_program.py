"""The same translation model of PyTorch's own layers, a process on one core.

Run by a Python that has PyTorch and NumPy, as torch_program.py of the folder
above is; the protocol is that of peer_process.py. The network is nn.Transformer
with the norm before each layer, between one table for embeddings and softmax;
the update is Adam's fused one.
"""

from __future__ import annotations

import json
import os
import sys

# As nn.Transformer calls its weights; the rest is the model's own.
_STACK = ('encoder.', 'decoder.')


def Main() -> None:
  """Builds the model, then runs the steps it is asked for."""
  setup = json.loads(sys.stdin.readline())
  # Before PyTorch starts its threads, which inherit it.
  os.sched_setaffinity(0, {setup['core']})
  import numpy as np
  import torch

  torch.set_num_threads(1)
  with np.load(setup['arrays']) as arrays:
    arrays = {name: torch.from_numpy(x) for name, x in arrays.items()}
  step = _MakeStep(setup, arrays)
  _Say(ready=torch.__version__)
  for _ in sys.stdin:
    _Say(loss=step())


def _Say(**values) -> None:
  print(json.dumps(values), flush=True)


def _MakeStep(setup, arrays):
  """A function that runs a step on the mini-batch and returns its loss."""
  import torch

  model = _MakeModel(setup, arrays)
  model.train()
  weights = list(model.parameters())
  optimizer = torch.optim.Adam(
    weights,
    setup['learning_rate'],
    (setup['beta1'], setup['beta2']),
    setup['epsilon'],
    fused=True,
  )
  batch = {
    name.removeprefix('batch/'): x
    for name, x in arrays.items()
    if name.startswith('batch/')
  }
  batch['labels'] = batch['labels'].long()

  def _Step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch)
    loss.backward()
    optimizer.step()
    return float(loss)

  return _Step


def _MakeModel(setup, arrays):
  """The model, with the weights of arrays."""
  import torch
  from torch import nn
  from torch.nn import functional

  dim = setup['dim']
  waves = {side: arrays[f'waves/{side}'] for side in ('source', 'target')}

  class Translation(nn.Module):
    def __init__(self):
      super().__init__()
      self.table = nn.Parameter(arrays['table'].clone())
      self.bias = nn.Parameter(arrays['bias'].clone())
      self.dropout = nn.Dropout(setup['dropout'])
      self.stack = nn.Transformer(
        d_model=dim,
        nhead=setup['num_heads'],
        num_encoder_layers=setup['num_layers'],
        num_decoder_layers=setup['num_layers'],
        dim_feedforward=setup['hidden_dim'],
        dropout=setup['dropout'],
        activation='relu',
        layer_norm_eps=1e-6,
        batch_first=True,
        norm_first=True,
      )
      self.stack.load_state_dict(
        {name: x for name, x in arrays.items() if name.startswith(_STACK)}
      )
      time = waves['target'].shape[0]
      self.register_buffer(
        'later', torch.ones(time, time, dtype=torch.bool).triu(1)
      )

    def _Embed(self, ids, side):
      x = functional.embedding(ids, self.table) * dim**0.5
      return self.dropout(x + waves[side])

    def forward(self, batch):
      hidden = batch['source_paddings'] > 0.5
      x = self.stack(
        self._Embed(batch['inputs'], 'source'),
        self._Embed(batch['target_ids'], 'target'),
        tgt_mask=self.later,
        tgt_is_causal=True,
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
      )
      losses = functional.cross_entropy(
        functional.linear(x, self.table, self.bias).flatten(0, 1),
        batch['labels'].flatten(),
        label_smoothing=setup['label_smoothing'],
        reduction='none',
      )
      counted = 1.0 - batch['target_paddings'].flatten()
      return (losses * counted).sum() / counted.sum()

  return Translation()


if __name__ == '__main__':
  Main()
