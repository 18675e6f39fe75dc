"""Tests of the command: 64 pairs of Django, learnt by heart, come back."""

import contextlib
import io
import os
import tempfile

import sacrebleu
from absl import flags as absl_flags
from absl.testing import absltest, flagsaver, parameterized

from lingvo_gpipe import trainer, user_error
from lingvo_gpipe.export import exporter
from lingvo_gpipe.gpipe import placement
from lingvo_gpipe.jobs import flags, model_loader
from lingvo_gpipe.train import checkpoint_files
from tasks.mt import (
  preparation,
  preparation_options,
  scores,
  sources,
  test_models,
  translation_file,
)
from tools.mt import translate

absl_flags.adopt_module_key_flags(translate)


def setUpModule():
  placement.ConfigureLogicalCpus(2)


def _Pairs(count):
  """Sentences of some length in English and German."""
  pairs = [
    x
    for x in sources.Open('django').pairs
    if x.language == 'de' and 20 < len(x.source) < 60 and '\n' not in x.source
  ]
  return list({x.source: x for x in pairs}.values())[:count]


class TranslateTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._folder = tempfile.mkdtemp(dir=absltest.get_default_test_tmpdir())
    cls._pairs = _Pairs(64)
    text = os.path.join(cls._folder, 'text.de.tsv')
    with open(text, 'w', encoding='utf-8') as f:
      f.writelines(f'{x.source}\t{x.target}\n' for x in cls._pairs)
    cls._data = os.path.join(cls._folder, 'data')
    preparation.Prepare(
      preparation_options.Options(
        source=f'tsv:{text}',
        output=cls._data,
        vocab_size=test_models.VOCAB_SIZE,
        directions='en-xx',
        min_pairs=1,
        dev_share=0.0,
        test_share=0.0,
      ),
      lambda line: None,
    )
    cls._logdir = os.path.join(cls._folder, 'run')
    with contextlib.redirect_stdout(io.StringIO()):
      trainer.Run(
        flags.Options(
          model=test_models.NAME, logdir=cls._logdir, data_dir=cls._data
        )
      )

  def _Main(self, **settings):
    settings = {'model': test_models.NAME, 'logdir': self._logdir, **settings}
    with flagsaver.flagsaver(**settings):
      return translate.Main()

  def _Translate(self, lines, **settings):
    source = self.create_tempfile(content='\n'.join(lines) + '\n').full_path
    output = os.path.join(self.create_tempdir().full_path, 'output')
    status = self._Main(
      **{'to': 'de', 'input': source, 'output': output, **settings}
    )
    self.assertEqual(status, 0)
    with open(output, encoding='utf-8') as f:
      return f.read().splitlines()

  @parameterized.parameters(
    {}, {'beam_size': 1, 'worker_split_size': 1, 'average_checkpoints': 1}
  )
  def testWhatWasLearntByHeart(self, **settings):
    found = self._Translate([x.source for x in self._pairs], **settings)
    references = [[x.target for x in self._pairs]]
    score = sacrebleu.metrics.CHRF().corpus_score(found, references).score
    self.assertGreater(score, 95)

  def testExported(self):
    output = os.path.join(self.create_tempdir().full_path, 'model')
    options = flags.Options(
      model=test_models.NAME, logdir=self._logdir, data_dir=self._data
    )
    prefix = checkpoint_files.Latest(os.path.join(self._logdir, 'train'))
    exporter.Export(model_loader.Load(options), prefix=prefix, output=output)
    lines = [x.source for x in self._pairs]
    found = self._Translate(lines, model=None, logdir=None, saved_model=output)
    self.assertEqual(found, self._Translate(lines))

  def testSentencesOfAFile(self):
    folder = self.create_tempdir().full_path
    source, output = f'{folder}/source', f'{folder}/output'
    rows = [
      translation_file.Translation('de', 'en', 'de', i, x.source, x.target, '')
      for i, x in enumerate(self._pairs[:30])
    ]
    translation_file.Write(source, rows)
    self.assertEqual(self._Main(sentences=source, output=output), 0)
    found = translation_file.Read(output)
    self.assertEqual([x.index for x in found], list(range(30)))
    self.assertGreater(scores.Summary(found)['chrf'], 95)

  def testAverageOfCheckpoints(self):
    lines = [x.source for x in self._pairs[:20]]
    alone = self._Translate(lines)
    averaged = self._Translate(lines, average_checkpoints=2)
    self.assertLen(averaged, 20)
    self.assertGreater(sum(map(str.__eq__, alone, averaged)), 5)

  def testEmptyLinesAndTagsInText(self):
    found = self._Translate(['', '<2de> ' + self._pairs[0].source, ''])
    self.assertLen(found, 3)
    self.assertEqual((found[0], found[2]), ('', ''))
    self.assertNotEmpty(found[1])

  def testErrors(self):
    for settings, message in (
      ({}, '--to is missing'),
      ({'to': 'dee'}, "vocab.model has no language 'dee'"),
      ({'to': 'de', 'input': '/no/file'}, '--input=/no/file: there is no such'),
      ({'to': 'de', 'logdir': '/no/run'}, r'/no/run/assets/vocab.model cannot'),
      (
        {'to': 'de', 'average_checkpoints': 9},
        r'holds 3 checkpoints, fewer than 9 \(--average_checkpoints\)',
      ),
      (
        {'to': 'de', 'average_checkpoints': 2, 'checkpoint': 'c'},
        '--checkpoint=c is one, but',
      ),
      ({'to': 'de', 'sentences': '/s'}, '--to=de has no part in --sentences'),
      ({'sentences': '/s'}, '--sentences=/s needs the name of another file'),
      ({'to': 'de', 'saved_model': '/m'}, '--model=tasks.* has no part in'),
      (
        {'to': 'de', 'saved_model': '/m', 'model': None, 'logdir': None},
        '--saved_model=/m: ',
      ),
    ):
      with self.assertRaisesRegex(user_error.UserError, message):
        self._Main(**settings)


if __name__ == '__main__':
  absltest.main()
