"""Tests of translation_decoder, with an untrained model."""

import os

import tensorflow as tf

from lingvo_gpipe import user_error
from lingvo_gpipe.export import serving_module
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import decode_program, eval_batches
from tasks.mt import (
  scores,
  test_models,
  test_translation_data,
  test_vocabulary,
  translation_decoder,
  translation_file,
)


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _Tiny(test_models.Tiny):
  VOCAB_SIZE = test_vocabulary.Get().size

  def Test(self):
    return self._Input('test').Set(bucket_lengths=[16, 64], batch_tokens=256)


class TranslationDecoderTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.create_tempdir().full_path
    self._index = test_translation_data.Write(folder)
    self._input = _Tiny().Test().Set(data_dir=folder).Instantiate()
    self._task = _Tiny().Model().Instantiate()
    self._task.Plan(self._input.BatchSpec())
    self._task.InstantiateVariables()

  def testAllSentencesInTheOrderOfTheBatches(self):
    (program,) = decode_program.MakePrograms(
      self._task, {'test': self._input}
    ).values()
    path = os.path.join(self.create_tempdir().full_path, 'out.jsonl')
    result = program.Run(path)
    rows = translation_file.Read(path)
    self.assertLen(rows, 2 * (13 + 4))
    by_place = {(row.group, row.index): row for row in rows}
    for group, count in (('de', 13), ('de-en', 13), ('pt_BR', 4)):
      with open(
        os.path.join(
          self._input.params.data_dir, self._index['text']['test'][group]
        )
      ) as f:
        lines = f.read().splitlines()
      self.assertLen(lines, count)
      for i, line in enumerate(lines):
        row = by_place[group, i]
        self.assertEqual(f'{row.source}\t{row.reference}', line)
        self.assertLess(row.score, 0.0)
    self.assertEqual(result.metrics, scores.Summary(rows))
    self.assertIn('chrf_en_xx', result.metrics)

  def _Decode(self, decoder, batch):
    decode = tf.function(decoder.Decode, autograph=False)
    return decode(self._task.EvalTheta(), batch)

  def testRowsAreTextOfTheIds(self):
    decoder = self._task.params.decoder.Instantiate(
      net=self._task.net, input_generator=self._input
    )
    batch = next(eval_batches.Read(self._input))
    outputs = self._Decode(decoder, batch)
    (row,) = decoder.Rows(
      {'example_ids': batch.example_ids.numpy()[1:2]},
      {
        'ids': outputs.ids.numpy()[1:2],
        'score': outputs.score.numpy()[1:2],
      },
    )
    vocab = test_vocabulary.Get()
    self.assertEqual(row.translation, vocab.Decode(outputs.ids.numpy()[1]))
    direction = [row.source_language, row.target_language]
    self.assertIn('en', direction)

  def testExported(self):
    decoder = self._task.params.decoder.Instantiate(
      net=self._task.net, input_generator=self._input
    )
    module = serving_module.ServingModule(self._task, self._input.BatchSpec())
    for weight, variable in zip(
      module.weights, tf.nest.flatten(self._task.net.vars), strict=True
    ):
      weight.assign(variable)
    (signature,) = decoder.ServingSignatures().values()
    function = module.Function(signature)
    batch = next(eval_batches.Read(self._input))
    expected = self._Decode(decoder, batch)
    found = function(batch.inputs)
    self.assertAllEqual(found['ids'], expected.ids)
    self.assertAllClose(found['scores'], expected.score, rtol=1e-5)

  def testBadSettings(self):
    params = self._task.params.decoder.Copy().Set(beam_size=0)
    with self.assertRaisesRegex(ValueError, 'beam_size=0 must be 1 or more'):
      params.Instantiate(net=self._task.net, input_generator=self._input)

  def testRules(self):
    vocab = test_vocabulary.Get()
    rules = translation_decoder.Rules(vocab)
    self.assertContainsSubset(vocab.tags.values(), rules.forbidden)
    self.assertEqual((rules.first_id, rules.end_id), (2, 3))

  def testVocabularyOfAnotherModel(self):
    other = self._input.params.Copy().Set(vocab_size=999).Instantiate()
    with self.assertRaisesRegex(
      user_error.UserError, r'a vocabulary of \d+ ids, the model one of .*=999'
    ):
      other.num_examples  # noqa: B018


if __name__ == '__main__':
  tf.test.main()
