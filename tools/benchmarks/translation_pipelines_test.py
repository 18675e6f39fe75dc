"""Tests of translation_pipelines."""

import itertools

from absl.testing import absltest

from tools.benchmarks import generated_pairs, translation_pipelines


class TranslationPipelinesTest(absltest.TestCase):
  def testMeasure(self):
    folder = self.create_tempdir().full_path
    generated_pairs.Write(folder, num_pairs=40, num_groups=2)
    inputs = translation_pipelines.Inputs(folder, 2**15)
    # Asks at the start, before and after the only mini-batch, and at the end.
    seconds = itertools.chain([0.0, 0.0, 2.0, 4.0])
    busy = iter([1.0, 3.0])
    speed = translation_pipelines.Measure(
      inputs['packed'], 1.0, lambda: next(seconds), lambda: next(busy)
    )
    batch = next(iter(inputs['packed'].Dataset(1)))
    self.assertEqual(
      speed.pairs,
      batch['source_segment_ids'].numpy().max(axis=1).sum() / 4.0,
    )
    self.assertEqual(speed.pairs_per_core, 2 * speed.pairs)
    ids = sum(
      (1 - batch[f'{side}_paddings'].numpy()).sum()
      for side in ('source', 'target')
    )
    self.assertEqual(speed.ids, ids / 4.0)
    self.assertEqual(speed.fill, ids / (2 * 2**15))


if __name__ == '__main__':
  absltest.main()
