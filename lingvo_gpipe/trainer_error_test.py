"""Wrong commands, each as the user sees it: one line and exit status 2."""

import os

from absl.testing import absltest, parameterized

from lingvo_gpipe import (
  trainer_in_process,
  trainer_process,
)

_TINY = f'--model={trainer_process.MODELS}.Tiny'


def _Main(*args):
  """(exit status, stderr) of the trainer's flags and Main in this process."""
  status, unused_stdout, stderr = trainer_in_process.Main(*args)
  return status, stderr


class TrainerErrorTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    root = self.create_tempdir()
    self._file = root.create_file('file').full_path
    self._logdir = os.path.join(root.full_path, 'logdir')

  @parameterized.named_parameters(
    ('UnknownFlag', ['--modle=x'], "flag 'modle'. Did you mean: mode, model"),
    ('BadEnum', ['--run_locally=npu'], '--run_locally=npu.*cpu.gpu.tpu'),
    ('BadNumber', ['--worker_split_size=two'], '--worker_split_size=two'),
    ('Negative', ['--max_steps=-1'], '--max_steps=-1.*non-negative'),
    ('Positional', [_TINY, 'now'], "unexpected argument 'now'"),
    (
      'WorkerMemory',
      ['--local_workers=2', '--worker_memory=lots'],
      "--worker_memory: 'lots' is not a size of memory; .* 1.5G",
    ),
    (
      'WorkerMemoryOfNoWorkers',
      ['--worker_memory=1G'],
      '--worker_memory=1G limits --local_workers, which is not set',
    ),
    (
      'WorkersOnGpus',
      ['--local_workers=2', '--run_locally=gpu'],
      '--local_workers=2 are processes .* use --run_locally=cpu .* not gpu',
    ),
    (
      'WorkersAndPartitions',
      ['--local_workers=2', '--worker_split_size=3'],
      '--worker_split_size=3 times .* and --local_workers=2 differ',
    ),
    (
      'EvalFlagOfTrainer',
      [_TINY, '--logdir=x', '--eval_once'],
      '--eval_once is for --job=evaler or decoder, not trainer',
    ),
    (
      'NegativeTimeout',
      [_TINY, '--eval_timeout=-1'],
      '--eval_timeout=-1.*non-negative',
    ),
    (
      'PredictionsNowhere',
      [_TINY, '--logdir=x', '--predictions=/no/where'],
      '--predictions=/no/where cannot be written: .* no directory /no$',
    ),
    (
      'UnknownJob',
      [_TINY, '--logdir=x', '--job=trainer,evalor'],
      "--job=trainer,evalor: there is no job 'evalor'; give one of trainer, ",
    ),
    (
      'WorkerAndMore',
      [_TINY, '--logdir=x', '--job=trainer,worker'],
      '--job=trainer,worker: a worker computes for other jobs',
    ),
    (
      'PredictionsOfTwoJobs',
      [_TINY, '--logdir=x', '--job=trainer,decoder', '--predictions=p'],
      '--predictions=p is one file, but each of --job=trainer,decoder would',
    ),
    ('NoModel', [], '--model is missing.*list_models'),
    ('NoLogDir', [_TINY], '--logdir is missing.*--logdir=/tmp/digits'),
  )
  def testFlags(self, args, message):
    self._Check(args, message)

  @parameterized.named_parameters(
    (
      'NothingToDecode',
      [_TINY, '--job=trainer,decoder'],
      'Tiny has nothing to decode: its task has no param "decoder"',
    ),
    ('UnknownModel', ['--model=image.digits.AmobaNet'], "'image.digits.Amob"),
    (
      'NearModel',
      [f'--model={trainer_process.MODELS}.Tyni'],
      "no model is called '.*Tyni'; did you mean '.*Tiny'",
    ),
    ('UnknownModule', [_TINY, '--import=no.such'], "no module 'no.such'"),
    (
      'TooManyPartitions',
      [_TINY, '--worker_split_size=5'],
      '4 cells cannot fill 5 partitions.*--worker_split_size.* to 4 or less',
    ),
    (
      'BatchNotDivisible',
      [_TINY, '--num_micro_batches=5'],
      'train data: mini-batch 16 is not divisible into num_micro_batches=5; '
      'set pad_batches=True, or use one of 1, 2, 4, 8, 16$',
    ),
    (
      'EvalBatchNotDivisible',
      [_TINY, '--model_params_override=input.batch_size=6'],
      'mini-batch 6 is not divisible into num_micro_batches=4',
    ),
    (
      'OverrideForm',
      [_TINY, '--model_params_override=nonsense'],
      "--model_params_override: override 'nonsense' is not of the form",
    ),
    (
      'OverridePath',
      [_TINY, '--model_params_override=train.learner.lerning_rate=1'],
      "train.learner.lerning_rate' is not defined .*'learning_rate'",
    ),
    (
      'OverrideType',
      [_TINY, '--model_params_override=train.max_steps=many'],
      "--model_params_override: override 'train.max_steps=many'",
    ),
    (
      'OverrideImpossible',
      [_TINY, '--model_params_override=train.learner.learning_rate=-1'],
      '--model_params_override does not fit the model: .*learning_rate=-1',
    ),
    (
      'OverrideContradictsFlag',
      [_TINY, '--max_steps=3', '--model_params_override=train.max_steps=4'],
      '--max_steps=3 and --model_params_override set train.max_steps',
    ),
    (
      'TooManyWorkers',
      [_TINY, '--local_workers=5'],
      '4 cells cannot fill 5 partitions',
    ),
    (
      'WorkersContradictOverride',
      [
        _TINY,
        '--local_workers=2',
        '--model_params_override=net.num_partitions=3',
      ],
      '--local_workers=2 and --model_params_override set net.num_partitions',
    ),
    (
      'NoData',
      [_TINY, '--model_params_override=input.num_points=0'],
      'train data: there are no examples',
    ),
    (
      'DataDir',
      [_TINY, '--data_dir=/data'],
      '--data_dir=/data has nothing to set: no input of .*inspect_params',
    ),
    (
      'InitFromNothing',
      [_TINY, '--init_checkpoint=/no/run/train/ckpt-00000001'],
      'no complete checkpoint /no/run/train/ckpt-00000001',
    ),
    (
      'InitRules',
      [_TINY, '--model_params_override=train.init_from.exclude=["("]'],
      r"does not fit the model: train.init_from.exclude: '\(' is not a regular",
    ),
    (
      'NothingToEvaluate',
      [_TINY, '--job=evaler', '--eval_once'],
      'train holds no checkpoint to evaluate; train first',
    ),
    (
      'NothingToWorkOn',
      [_TINY, '--job=evaler,decoder', '--eval_all'],
      'train holds no checkpoint to evaluate and decode; train first',
    ),
    ('NoGpu', [_TINY, '--run_locally=gpu'], '--run_locally=gpu: .* no GPU'),
    (
      'Splits',
      [_TINY, '--model_params_override=net.splits=[1, 2]'],
      r'splits=\[1, 2\] holds 3 cells, but there are 4',
    ),
    (
      'SplitsAndPartitions',
      [
        _TINY,
        '--worker_split_size=3',
        '--model_params_override=net.splits=[1, 3]',
      ],
      r'splits=\[1, 3\] makes 2 partitions, but num_partitions=3',
    ),
  )
  def testModel(self, args, message):
    self._Check([f'--logdir={self._logdir}', *args], message)

  def testLogDirNotWritable(self):
    self._Check(
      [_TINY, f'--logdir={self._file}/below'],
      r'cannot write to the directory .*/file/below: .* \(--logdir\)',
    )

  def _Check(self, args, message):
    status, stderr = _Main(*args)
    self.assertEqual(status, 2)
    self.assertRegex(stderr, r'^error: [^\n]+\n$')
    self.assertRegex(stderr.removesuffix('\n'), message)

  def testErrorsOfCellsAreNotTheUsers(self):
    with self.assertRaisesRegex(ValueError, r'cell 0 \(tiny/net/first, Linear'):
      _Main(
        _TINY,
        f'--logdir={self._logdir}',
        '--model_params_override=net.cells[0].input_dim=7',
      )

  def testHelp(self):
    status, stderr = _Main('--help')
    self.assertEqual((status, stderr), (0, ''))

  def testAsAProcess(self):
    process = trainer_process.Start('--model=image.digits.AmobaNet')
    stdout, stderr = process.communicate()
    self.assertEqual(process.returncode, 2)
    self.assertEqual(stdout, '')
    self.assertRegex(stderr, r'^error: --logdir is missing[^\n]*\n$')


if __name__ == '__main__':
  absltest.main()
