"""Tests of fprop_context."""

import threading

import tensorflow as tf

from lingvo_gpipe import fprop_context, nested_map


class FPropContextTest(tf.test.TestCase):
  def testOutsideOfAnyIsEvaluation(self):
    self.assertTrue(fprop_context.Current().do_eval)

  def testInnermostCountsAndLeavesWithAnError(self):
    with fprop_context.FPropContext(do_eval=False, global_step=3) as outer:
      with self.assertRaises(KeyError):
        with fprop_context.FPropContext(do_eval=True):
          self.assertTrue(fprop_context.Current().do_eval)
          raise KeyError
      self.assertIs(fprop_context.Current(), outer)
      self.assertEqual(fprop_context.Current().global_step, 3)
    self.assertTrue(fprop_context.Current().do_eval)

  def testALayerThatRunsTwiceReportsTheSum(self):
    context = fprop_context.FPropContext(do_eval=False)
    values = nested_map.NestedMap(count=tf.constant(2.0), total=tf.ones([3]))
    for _ in range(2):
      context.AddStatistics('net/norm', values)
      context.AddAuxLoss('net/aux', tf.constant(0.5))
    self.assertAllClose(context.statistics['net/norm'].count, 4.0)
    self.assertAllClose(context.statistics['net/norm'].total, [2.0, 2.0, 2.0])
    self.assertAllClose(context.aux_losses, {'net/aux': 1.0})

  def testThreadsDoNotSeeEachOther(self):
    seen = []
    with fprop_context.FPropContext(do_eval=False):
      thread = threading.Thread(
        target=lambda: seen.append(fprop_context.Current().do_eval)
      )
      thread.start()
      thread.join()
    self.assertEqual(seen, [True])


if __name__ == '__main__':
  tf.test.main()
