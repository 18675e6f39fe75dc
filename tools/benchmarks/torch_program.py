"""A stage of the same stack in torch.distributed.pipelining, for peers.py.

Run by a Python that has PyTorch and NumPy; this project needs neither PyTorch
nor this file. Standard input: a line of JSON, the Setup; then the name of a
configuration for each step to run. Standard output: a line of JSON when ready,
and one after each step with the mini-batch's loss (null but on the last stage).
Between steps the process waits for a line and takes no processor time.
"""

from __future__ import annotations

import json
import os
import sys


def Main() -> None:
  """Builds all configurations, then runs the steps it is asked for."""
  setup = json.loads(sys.stdin.readline())
  # Before PyTorch starts its threads, which inherit it.
  os.sched_setaffinity(0, {setup['core']})
  os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
  import numpy as np
  import torch
  import torch.distributed

  torch.set_num_threads(1)
  torch.distributed.init_process_group(
    'gloo',
    init_method=f'file://{setup["rendezvous"]}',
    rank=setup['rank'],
    world_size=setup['num_partitions'],
  )
  with np.load(setup['arrays']) as arrays:
    arrays = dict(arrays)
  steps = {
    config['name']: _MakeStep(setup, config, arrays)
    for config in setup['configs']
  }
  _Say(ready=torch.__version__)
  for line in sys.stdin:
    _Say(loss=steps[line.strip()]())
  torch.distributed.destroy_process_group()


def _Say(**values) -> None:
  print(json.dumps(values), flush=True)


def _MakeStep(setup, config, arrays):
  """A function that runs a step of SGD and returns the loss or None."""
  import torch
  from torch.distributed import pipelining

  rank, last = setup['rank'], setup['num_partitions'] - 1
  stage = pipelining.PipelineStage(
    _MakeModule(setup, config['policy'], arrays),
    rank,
    setup['num_partitions'],
    torch.device('cpu'),
  )
  kind = {
    'gpipe': pipelining.ScheduleGPipe,
    '1f1b': pipelining.Schedule1F1B,
  }[config['schedule']]
  schedule = kind(
    stage,
    config['num_micro_batches'],
    loss_fn=torch.nn.functional.mse_loss,
  )
  weights = list(stage.submod.parameters())
  inputs = [torch.from_numpy(arrays['inputs'])] if rank == 0 else []
  labels = torch.from_numpy(arrays['labels'])

  def _Step():
    losses = []
    last_only = {'target': labels, 'losses': losses} if rank == last else {}
    schedule.step(*inputs, **last_only)
    with torch.no_grad():
      for weight in weights:
        weight.add_(weight.grad, alpha=-setup['learning_rate'])
        weight.grad = None
    return float(torch.stack(losses).mean()) if losses else None

  return _Step


def _MakeModule(setup, policy, arrays):
  """The blocks of this stage, under a policy of re-materialization."""
  import torch
  from torch.nn import functional
  from torch.utils.checkpoint import checkpoint

  heads = setup['heads']

  class Block(torch.nn.Module):
    def __init__(self, index):
      super().__init__()
      for name in (
        'qkv',
        'post',
        'hidden',
        'output',
        'attention_scale',
        'ffn_scale',
      ):
        weight = torch.from_numpy(arrays[f'block_{index}/{name}'].copy())
        # Matrices as PyTorch's own Linear has them.
        if weight.dim() == 2:
          weight = weight.t().contiguous()
        self.register_parameter(name, torch.nn.Parameter(weight))

    def forward(self, x):
      batch, tokens, d = x.shape
      y = functional.layer_norm(x, (d,), self.attention_scale, None, 1e-6)
      qkv = functional.linear(y, self.qkv)
      q, k, v = qkv.view(batch, tokens, 3, heads, d // heads).permute(
        2, 0, 3, 1, 4
      )
      y = functional.scaled_dot_product_attention(q, k, v)
      y = y.transpose(1, 2).reshape(batch, tokens, d)
      x = x + functional.linear(y, self.post)
      y = functional.layer_norm(x, (d,), self.ffn_scale, None, 1e-6)
      y = functional.relu(functional.linear(y, self.hidden))
      return x + functional.linear(y, self.output)

  class Blocks(torch.nn.Module):
    def __init__(self, blocks):
      super().__init__()
      self.blocks = torch.nn.ModuleList(blocks)

    def _Run(self, x):
      for block in self.blocks:
        x = block(x)
      return x

    def forward(self, x):
      if policy == 'partition' and setup['rank'] < setup['num_partitions'] - 1:
        return checkpoint(self._Run, x, use_reentrant=False)
      if policy == 'cell':
        for block in self.blocks:
          x = checkpoint(block, x, use_reentrant=False)
        return x
      return self._Run(x)

  start, end = setup['blocks']
  return Blocks([Block(i) for i in range(start, end)])


if __name__ == '__main__':
  Main()
