"""Tests of input_flags."""

from absl.testing import absltest

from lingvo_gpipe import hyperparams, user_error
from lingvo_gpipe.jobs import flags, input_flags


def _Source(data_dir=''):
  p = hyperparams.Params()
  p.Define('data_dir', data_dir, 'Where it is.')
  p.Define('download', False, 'Whether to fetch it.')
  return p


def _Input():
  """A source of its own, and two in a list; other things of these names."""
  p = hyperparams.Params()
  p.Define('source', _Source(), 'One.')
  p.Define('more', [_Source('/old'), {'deep': _Source()}], 'Others.')
  p.Define('old_data_dir', '', 'Not it.')
  p.Define('download', 3, 'A number.')
  return p


_DATA_DIRS = ('source.data_dir', 'more[0].data_dir', "more[1]['deep'].data_dir")


class InputFlagsTest(absltest.TestCase):
  def testSetsAtAnyDepth(self):
    p = _Input()
    options = flags.Options(data_dir='/new', download=True)
    input_flags.Apply(options, p, empty_only=False)
    self.assertCountEqual(input_flags.Find(p, 'data_dir', str), _DATA_DIRS)
    for path in _DATA_DIRS:
      self.assertEqual(p.Get(path), '/new')
    self.assertTrue(p.source.download)
    self.assertEqual((p.download, p.old_data_dir), (3, ''))
    input_flags.CheckUsed(options, [p])

  def testWithoutFlagsNothingChanges(self):
    p = _Input()
    input_flags.Apply(flags.Options(), p, empty_only=False)
    self.assertEqual(p, _Input())
    input_flags.CheckUsed(flags.Options(), [hyperparams.Params()])

  def testEmptyOnly(self):
    p = _Input()
    options = flags.Options(data_dir='/new')
    input_flags.Apply(options, p, empty_only=True)
    self.assertEqual([p.Get(x) for x in _DATA_DIRS], ['/new', '/old', '/new'])
    with self.assertRaisesRegex(
      user_error.UserError,
      r'^--data_dir=/new and --model_params_override set input.more\[0\]',
    ):
      input_flags.CheckUsed(options, [p])

  def testNothingToSet(self):
    p = hyperparams.Params()
    p.Define('download', 3, 'A number.')
    for options, message in (
      ({'data_dir': '/x'}, r'^--data_dir=/x has nothing .* data_dir \(text\)'),
      ({'download': True}, r'^--download has nothing .* \(True or False\)'),
    ):
      with self.assertRaisesRegex(user_error.UserError, message):
        input_flags.CheckUsed(flags.Options(model='m', **options), [p])

  def testOneInputThatHasItIsEnough(self):
    options = flags.Options(data_dir='/new')
    input_flags.CheckUsed(options, [hyperparams.Params(), _Source('/new')])


if __name__ == '__main__':
  absltest.main()
