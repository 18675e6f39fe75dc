"""Tests of vocabulary."""

import hashlib
import io
import random

import sentencepiece
from absl.testing import absltest, parameterized

from lingvo_gpipe import user_error
from tasks.mt import test_vocabulary, vocabulary


def _Model(**kwargs):
  """A model of other making."""
  model = io.BytesIO()
  options = {
    'user_defined_symbols': ['<2en>', '<2de>'],
    'byte_fallback': True,
    'vocab_size': 305,
    'pad_id': 0,
    'unk_id': 1,
    'bos_id': 2,
    'eos_id': 3,
  }
  sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(test_vocabulary.TEXTS),
    model_writer=model,
    minloglevel=2,
    **{**options, **kwargs},
  )
  return model.getvalue()


class VocabularyTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._vocab = test_vocabulary.Get()

  def testSizesAndTags(self):
    self.assertEqual(self._vocab.size, 312)
    self.assertEqual(self._vocab.tags, {'en': 4, 'de': 5, 'pt_BR': 6})
    self.assertEqual(self._vocab.TagId('pt_BR'), 6)
    self.assertEqual(
      self._vocab.sha256, hashlib.sha256(self._vocab.model).hexdigest()
    )
    with self.assertRaisesRegex(
      user_error.UserError,
      "the vocabulary has no language 'pt'; did you mean 'pt_BR'",
    ):
      self._vocab.TagId('pt')

  @parameterized.parameters(
    '',
    ' ',
    'The cat sees a house.',
    '  two  blanks ',
    'a\nb\tc\r\n',
    '日本語 ☃ 👩‍👩‍👧 می‌روم',
    'u\u0308 ﬁ ½',
    '<2de>',
    '<2de>The cat<2en> <2pt_BR',
    '<<2de>>',
    '▁▁ The▁cat',
    '\ufdd0 \ufdd01 \ufdd02de>',
    '<unk> <s> </s> <pad> <0x41>',
    '\0',
  )
  def testTextComesBack(self, text):
    ids = self._vocab.Encode(text)
    self.assertEqual(self._vocab.Decode(ids), text)
    self.assertFalse([x for x in ids if x < 7], text)
    self.assertEqual(
      self._vocab.EncodeAll(['x', text]), [self._vocab.Encode('x'), ids]
    )

  def testRandomTextComesBack(self):
    rng = random.Random(1)
    for _ in range(300):
      text = ''.join(
        chr(x)
        for x in rng.choices(range(1, 0x11000), k=rng.randrange(20))
        if not 0xD800 <= x < 0xE000
      )
      ids = self._vocab.Encode(text)
      self.assertEqual(self._vocab.Decode(ids), text)
      self.assertGreaterEqual(min(ids, default=7), 7)

  def testSequences(self):
    pieces = self._vocab.Encode('The cat')
    self.assertEqual(self._vocab.SourceIds(pieces, 'de'), [5, *pieces, 3])
    self.assertEqual(self._vocab.TargetIds(pieces), [*pieces, 3])

  def testDecodesWhatIsNoText(self):
    pieces = self._vocab.Encode('The cat')
    self.assertEqual(self._vocab.Decode([5, 2, *pieces, 3, 0, 0]), 'The cat')
    self.assertEqual(self._vocab.Decode([]), '')
    # A broken UTF-8 sequence of bytes.
    byte = self._vocab.Encode('☃')[-1]
    self.assertIn('\ufffd', self._vocab.Decode([*pieces, byte]))

  def testReads(self):
    path = self.create_tempfile(
      'x.model', self._vocab.model, mode='wb'
    ).full_path
    self.assertEqual(
      vocabulary.Vocabulary.Read(path).sha256, self._vocab.sha256
    )
    other = vocabulary.Vocabulary(_Model())
    self.assertEqual(other.tags, {'en': 4, 'de': 5})

  def testMistakes(self):
    with self.assertRaisesRegex(user_error.UserError, 'No such file.*none.mod'):
      vocabulary.Vocabulary.Read('/none.model')
    path = self.create_tempfile('x.model', 'text').full_path
    with self.assertRaisesRegex(
      user_error.UserError, 'x.model is no model of SentencePiece'
    ):
      vocabulary.Vocabulary.Read(path)
    for kwargs in (
      {'user_defined_symbols': []},
      {'byte_fallback': False, 'vocab_size': 50},
      {'pad_id': -1, 'unk_id': 0, 'bos_id': 1, 'eos_id': 2},
    ):
      with self.assertRaisesRegex(
        user_error.UserError, 'vocabulary is a model .* not one for translation'
      ):
        vocabulary.Vocabulary(_Model(**kwargs))


if __name__ == '__main__':
  absltest.main()
