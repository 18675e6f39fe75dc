"""Tests of skip_connections."""

import tensorflow as tf

from lingvo_gpipe import base_layer
from lingvo_gpipe.gpipe import skip_connections


class _Cell(base_layer.BaseLayer):
  """Declares what its params say."""

  @classmethod
  def Params(cls):
    p = super().Params()
    p.Define('stashes', (), 'Names.')
    p.Define('pops', (), 'Names.')
    return p

  def Stashes(self):
    return tuple(self.params.stashes)

  def Pops(self):
    return tuple(self.params.pops)


def _Cells(*declared):
  return [
    _Cell.Params()
    .Set(name=f'cell_{i}', stashes=stashes, pops=pops)
    .Instantiate()
    for i, (stashes, pops) in enumerate(declared)
  ]


class SkipConnectionsTest(tf.test.TestCase):
  def testWhatFits(self):
    skip_connections.Check([])
    skip_connections.Check(
      _Cells(('a', ()), ('b', ()), ((), ('a', 'b')), (('c'), ()), ((), 'c'))
    )

  def testAllFaultsAreListed(self):
    cells = _Cells(
      ((), ['early']),
      (['early', 'lost', 'twice'], ()),
      (['twice', 'self'], ['self', 'nothing']),
      ((), ['twice']),
      ((), ['twice']),
    )
    with self.assertRaises(ValueError) as caught:
      skip_connections.Check(cells)
    message = str(caught.exception)
    for fault in (
      "cell_0 pops 'early' before cell_1 stashes it",
      "cell_1 stashes 'lost', which no cell pops",
      "cell_2 stashes 'twice', which cell_1 has stashed already",
      "cell_2 both stashes and pops 'self'",
      "cell_2 pops 'nothing', which no cell stashes",
      "cell_4 pops 'twice', which cell_3 has popped already",
    ):
      self.assertIn(fault, message)


if __name__ == '__main__':
  tf.test.main()
