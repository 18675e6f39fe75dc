"""Accuracies of simple classifiers on the data of an image model.

  python -m tools.baselines --model=image.emoji.AmoebaNetEmoji

The most frequent class, the nearest neighbour by pixels, and logistic
regression on pixels are fitted to the model's training data, without
augmentation, and evaluated on its dev and test data.
"""

from __future__ import annotations

import json
import os

from absl import flags

from lingvo_gpipe import quiet_import, text_table, user_error
from lingvo_gpipe.jobs import flags as job_flags
from tools.benchmarks import command

FLAGS = flags.FLAGS

# The trainer's, with the trainer's meaning.
for _name in ('model', 'model_params_override', 'import'):
  flags.declare_key_flag(_name)

_JSON = flags.DEFINE_string(
  'json', '', 'A file to write the accuracies to. Empty: none.'
)
_MAX_EXAMPLES = flags.DEFINE_integer(
  'max_examples',
  20_000,
  'More training examples are refused: these classifiers hold all of them in '
  'memory and compare with each.',
  lower_bound=1,
)


def Main() -> int:
  """The tool."""
  # `bazel run` starts programs elsewhere and leaves word of where it was.
  os.chdir(os.environ.get('BUILD_WORKING_DIRECTORY', os.curdir))
  if not FLAGS.model:
    raise user_error.UserError(
      '--model is missing: name a registered image model, such as '
      '--model=image.digits.AmoebaNetDigits'
    )
  # Only now: what follows needs TensorFlow, which bad flags do without.
  quiet_import.ImportTensorFlow(quiet=True)
  from tools.baselines import classifiers

  data = _Data()
  train = data.pop('train')
  if not data:
    raise user_error.UserError(
      f'--model={FLAGS.model} has neither dev nor test data: define its method '
      'Dev or Test'
    )
  predictors = {
    'majority class': classifiers.MajorityClass(train),
    'nearest neighbour': classifiers.NearestNeighbour(train),
    'logistic regression': classifiers.LogisticRegression(
      train, data.get('dev')
    ),
  }
  accuracies = {
    name: {part: classifiers.Accuracy(f, x) for part, x in data.items()}
    for name, f in predictors.items()
  }
  counts = {part: len(x.labels) for part, x in {'train': train, **data}.items()}
  _Show(accuracies, counts)
  if _JSON.value:
    with (
      user_error.Expected(OSError, prefix='--json: '),
      open(_JSON.value, 'w', encoding='utf-8') as f,
    ):
      report = {
        'model': FLAGS.model,
        'num_examples': counts,
        'accuracies': accuracies,
      }
      json.dump(report, f, indent=2)
  return 0


def _Data():
  """{'train', 'dev' or 'test': Examples}, as far as the model has them."""
  from lingvo_gpipe.jobs import model_loader
  from tools.baselines import examples

  model = model_loader.Load(
    job_flags.Options(
      model=FLAGS.model,
      model_params_override=FLAGS.model_params_override,
      imports=tuple(FLAGS['import'].value),
    )
  )
  model.params.input.training = False  # Each example once, not augmented.
  inputs = model_loader.Inputs(model)
  for generator in inputs.values():
    examples.CheckIsImages(generator)
  model_loader.CheckData(inputs)
  count = inputs['train'].num_examples
  if count > _MAX_EXAMPLES.value:
    raise user_error.UserError(
      f'--model={FLAGS.model} has {count} training examples, more than '
      f'--max_examples={_MAX_EXAMPLES.value}: raise it, if there are time and '
      'memory for so many'
    )
  return {part: examples.Read(x) for part, x in inputs.items()}


def _Show(
  accuracies: dict[str, dict[str, float]], counts: dict[str, int]
) -> None:
  """Prints how many examples there are, and a table of the accuracies."""
  sizes = ', '.join(f'{count} {part}' for part, count in counts.items())
  print(f'{FLAGS.model}: {sizes} examples')
  parts = list(next(iter(accuracies.values())))
  rows = [['accuracy', *parts]] + [
    [name, *(f'{values[part]:.4f}' for part in parts)]
    for name, values in accuracies.items()
  ]
  print('\n'.join(text_table.Aligned(rows, left=[0])))


if __name__ == '__main__':
  command.Run(Main)
