"""Tests of generated_pairs."""

from absl.testing import absltest

from tasks.mt import pair_table, translation_data
from tools.benchmarks import generated_pairs


class GeneratedPairsTest(absltest.TestCase):
  def testIsPreparedData(self):
    folder = self.create_tempdir().full_path
    generated_pairs.Write(folder, num_pairs=2000, num_groups=10)
    data = translation_data.TranslationData(folder, 'train')
    sizes = [x.size for x in data.groups]
    self.assertLen(sizes, 10)
    self.assertBetween(sum(sizes), 1990, 2000)
    self.assertGreater(sizes[0], 9 * sizes[-1])
    pairs = pair_table.Read(data)
    self.assertBetween(pairs.source.lengths.mean(), 20, 32)
    self.assertLessEqual(pairs.Longer().max(), 120)


if __name__ == '__main__':
  absltest.main()
