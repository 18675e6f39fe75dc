"""Tests of text_table."""

from absl.testing import absltest

from lingvo_gpipe import text_table


class TextTableTest(absltest.TestCase):
  def testAligned(self):
    rows = [('name', 'value'), ('a', '1'), ('bcdefg', '123456')]
    self.assertEqual(
      text_table.Aligned(rows, left=(0,)),
      ['name     value', 'a            1', 'bcdefg  123456'],
    )


if __name__ == '__main__':
  absltest.main()
