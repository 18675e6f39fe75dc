"""Tests of genotypes."""

from absl.testing import absltest, parameterized

from tasks.image import genotypes

# The `used` flags of the published tables: an output joins the states with 0.
_USED = {
  ('amoebanet_d', False): (0, 1, 1, 0, 0, 1, 0),
  ('amoebanet_d', True): (1, 1, 1, 1, 0, 0, 0),
  ('amoebanet_b', False): (0, 1, 1, 0, 0, 1, 0),
  ('amoebanet_b', True): (1, 1, 1, 1, 1, 0, 0),
}


class GenotypesTest(parameterized.TestCase):
  @parameterized.parameters(*_USED)
  def testConcatJoinsTheUnusedStates(self, name, reduction):
    cell = genotypes.Get(name).Cell(reduction)
    used = _USED[name, reduction]
    self.assertEqual(cell.num_states, len(used))
    self.assertEqual(
      cell.concat, tuple(i for i, flag in enumerate(used) if not flag)
    )

  @parameterized.parameters(*_USED)
  def testEveryStateIsReadOrJoined(self, name, reduction):
    cell = genotypes.Get(name).Cell(reduction)
    read = {state for block in cell.blocks for state, unused_op in block}
    self.assertEqual(read | set(cell.concat), set(range(cell.num_states)))

  @parameterized.parameters('amoebanet_d', 'amoebanet_b')
  def testReadStatesAreTheUsedOnes(self, name):
    for reduction in (False, True):
      cell = genotypes.Get(name).Cell(reduction)
      read = {state for block in cell.blocks for state, unused_op in block}
      for state, flag in enumerate(_USED[name, reduction]):
        if flag:
          self.assertIn(state, read)

  def testUnknownName(self):
    with self.assertRaisesRegex(
      ValueError, "'amoebanet_c' is not known; .* amoebanet_b, amoebanet_d"
    ):
      genotypes.Get('amoebanet_c')

  def testBadTables(self):
    one = genotypes.CONV_1X1
    with self.assertRaisesRegex(ValueError, 'block 0 makes h2 and reads h2'):
      genotypes.CellGenotype((((0, one), (2, one)),), (2,))
    with self.assertRaisesRegex(ValueError, "operation 'conv' is none of"):
      genotypes.CellGenotype((((0, 'conv'), (1, one)),), (2,))
    with self.assertRaisesRegex(ValueError, 'names states beyond h2'):
      genotypes.CellGenotype((((0, one), (1, one)),), (3,))


if __name__ == '__main__':
  absltest.main()
