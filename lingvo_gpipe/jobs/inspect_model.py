"""What a model consists of, found without taking memory for it.

--mode=inspect_model prints a line per variable and the table of partitions, and
ends with `total parameters: 121,910,000`. With --logdir the same goes to
<logdir>/model_analysis.json:

  model, source     the registry's name, where the class is
  total_parameters  of all trainable variables
  other_parameters  of variables that no gradient changes (moving moments)
  weight_bytes      of all variables
  slot_bytes        what the optimizer and averages add
  variables         list of {path, shape, dtype, trainable, partition}
  plan              the partitions, see gpipe/planning/plan.py
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lingvo_gpipe import cluster, text_table, user_error
from lingvo_gpipe.gpipe.planning import plan as plan_lib
from lingvo_gpipe.gpipe.planning import plan_text
from lingvo_gpipe.jobs import flags, model_loader
from lingvo_gpipe.jobs import logdir as logdir_lib


def InspectParams(options: flags.Options) -> None:
  """Prints the params with which this command would train.

  Args:
    options: the flags.
  """
  print(model_loader.Load(options).params.ToText().rstrip('\n'))


def InspectModel(options: flags.Options) -> None:
  """Prints variables, partitions and the number of parameters.

  Args:
    options: the flags.
  """
  logdir = logdir_lib.LogDir(options.logdir) if options.logdir else None
  if logdir:
    logdir.Create()
  model = model_loader.Load(options)
  task = model.Instantiate()
  batch_spec = model_loader.Inputs(model)['train'].BatchSpec()
  devices = cluster.Planned(
    options.run_locally, model.num_partitions * model.num_replicas
  ).devices
  with user_error.Expected(ValueError):
    plan = task.Plan(batch_spec, devices)
  analysis = Analyze(model, task, plan)
  for line in _VariableLines(analysis['variables']):
    print(line)
  print()
  print(plan.ToText())
  print()
  print(SummaryText(analysis))
  print(f'total parameters: {analysis["total_parameters"]:,}')
  if logdir:
    logdir.WriteJson('model_analysis.json', analysis)


def Analyze(
  model: model_loader.Model, task: Any, plan: plan_lib.PipelinePlan
) -> dict[str, Any]:
  """The contents of model_analysis.json; see the module's docstring.

  Args:
    model: as loaded.
    task: a BaseTask, with or without variables.
    plan: of its network.

  Returns:
    A dict for json.dump.
  """
  partition_of = {
    spec.path: k
    for k, (start, end) in enumerate(plan.partitions)
    for cell in task.net.cells[start:end]
    for spec in tf.nest.flatten(cell.VariableSpecs())
  }
  specs = tf.nest.flatten(task.VariableSpecs())
  return {
    'model': model.name,
    'source': model.source,
    'total_parameters': sum(s.size for s in specs if s.trainable),
    'other_parameters': sum(s.size for s in specs if not s.trainable),
    'weight_bytes': sum(s.num_bytes for s in specs),
    'slot_bytes': sum(s.num_bytes for s in task.StateSpecs().values()),
    'variables': [
      {
        'path': s.path,
        'shape': list(s.shape),
        'dtype': s.dtype.name,
        'trainable': s.trainable,
        'partition': partition_of.get(s.path),
      }
      for s in specs
    ],
    'plan': plan.ToJson(),
  }


def SummaryText(analysis: dict[str, Any]) -> str:
  """One line on the memory of the whole model.

  Args:
    analysis: of Analyze.

  Returns:
    The line.
  """
  return (
    f'{analysis["total_parameters"]:,} trainable and '
    f'{analysis["other_parameters"]:,} other parameters; weights '
    f'{plan_text.Bytes(analysis["weight_bytes"])}, optimizer slots '
    f'{plan_text.Bytes(analysis["slot_bytes"])}'
  )


def _VariableLines(variables: list[dict[str, Any]]) -> list[str]:
  """A table, names to the left."""
  rows = [('variable', 'shape', 'dtype', 'partition', '')]
  rows += [
    (
      v['path'],
      'x'.join(map(str, v['shape'])) or 'scalar',
      v['dtype'],
      str(v['partition']),
      '' if v['trainable'] else 'not trainable',
    )
    for v in variables
  ]
  return text_table.Aligned(rows, left=range(len(rows[0])))
