"""Tests of decode_program."""

import json
import os

from absl.testing import absltest

from lingvo_gpipe import trainer_test_models, user_error
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import decode_program


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _NamedTest(trainer_test_models.Named):
  """Named, with the dataset named."""

  def Task(self):
    p = super().Task()
    p.decoder.datasets = ['test']
    return p


class DecodeProgramTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._task, self._inputs = trainer_test_models.MakeTiny(
      trainer_test_models.Named
    )
    programs = decode_program.MakePrograms(self._task, self._inputs)
    self.assertEqual(list(programs), ['test'])
    self._program = programs['test']
    self._path = os.path.join(self.create_tempdir().full_path, 'decoded')

  def testWritesAndScoresAllExamples(self):
    result = self._program.Run(self._path)
    with open(self._path) as f:
      rows = [json.loads(line) for line in f]
    self.assertLen(rows, 40)  # In batches of 16, 16 and 8.
    self.assertEqual((result.num_batches, result.num_examples), (3, 40))
    right = sum(row['label'] == row['named'] for row in rows)
    self.assertEqual(result.metrics, {'named': right / 40})
    accuracy = [
      float(self._task.EvalStep(batch).accuracy.total)
      for batch in self._inputs['test'].Dataset()
    ]
    self.assertEqual(right, sum(accuracy))

  def testWithoutAFile(self):
    self.assertEqual(self._program.Run('').num_examples, 40)
    self.assertFalse(os.path.exists(self._path))

  def testInterrupted(self):
    self.assertIsNone(self._program.Run(self._path, lambda: True))
    self.assertFalse(os.path.exists(self._path))

  def testRateAndProgress(self):
    # Start, three batches, end.
    seconds = iter([0.0, 100.0, 105.0, 121.0, 122.0])
    shown = []
    program = decode_program.DecodeProgram(
      self._task,
      self._task.params.decoder.Instantiate(
        net=self._task.net, input_generator=self._inputs['test']
      ),
      'test',
      now=lambda: next(seconds),
      show=shown.append,
    )
    result = program.Run('')
    self.assertEqual(result.examples_per_second, 24 / 22)
    self.assertEqual(
      shown, ['decoding test: 16 of 40', 'decoding test: 40 of 40']
    )

  def testDatasetsThatAreNotThere(self):
    del self._inputs['test']
    self.assertEqual(decode_program.MakePrograms(self._task, self._inputs), {})
    self._task, _ = trainer_test_models.MakeTiny(_NamedTest)
    with self.assertRaisesRegex(
      user_error.UserError, "names 'test', but the data of the model is dev, tr"
    ):
      decode_program.MakePrograms(self._task, self._inputs)

  def testNoDecoder(self):
    task, inputs = trainer_test_models.MakeTiny()
    self.assertEqual(decode_program.MakePrograms(task, inputs), {})


if __name__ == '__main__':
  absltest.main()
