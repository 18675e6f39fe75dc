"""Tests of nonfinite."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from lingvo_gpipe import trainer_test_models
from lingvo_gpipe.gpipe import nonfinite, placement


def setUpModule():
  placement.ConfigureLogicalCpus(2)


class _Overflows(trainer_test_models.Classify):
  """Finite losses whose gradients overflow."""

  def FProp(self, theta, inputs, batch):
    @tf.custom_gradient
    def _Explode(x):
      return x, lambda dy: dy * float('inf')

    return super().FProp(theta, _Explode(inputs), batch)


class _Model(trainer_test_models.Tiny):
  HEAD = trainer_test_models.Classify

  def Task(self):
    p = super().Task()
    p.net.num_partitions = 2
    if self.HEAD is not trainer_test_models.Classify:
      head = self.HEAD.Params()
      for name in ('name', 'input_dim', 'output_dim'):
        head.Set(**{name: p.net.cells[-1].Get(name)})
      p.net.cells[-1] = head
    return p


class _Overflowing(_Model):
  HEAD = _Overflows


class NonfiniteTest(parameterized.TestCase):
  def _Make(self, cls=_Model):
    task, inputs = trainer_test_models.MakeTiny(cls)
    return task.net, next(iter(inputs['train'].Dataset(0)))

  def testBatch(self):
    net, batch = self._Make()
    batch['inputs'] += float('nan')
    self.assertEqual(
      nonfinite.Explain(net, batch, 0),
      'the mini-batch itself is not finite, in inputs',
    )

  def testWeights(self):
    net, batch = self._Make()
    net.cells[2].vars.b.assign([1.0, float('inf'), 1.0, 1.0])
    self.assertEqual(
      nonfinite.Explain(net, batch, 0),
      'weights are not finite: tiny/net/second/b',
    )

  def testFirstCell(self):
    """Huge weights overflow in the last cell, for one micro-batch's input."""
    net, batch = self._Make()
    net.cells[3].vars.w.assign(tf.fill([4, 3], 3e38))
    text = nonfinite.Explain(net, batch, 0)
    self.assertRegex(
      text,
      r'^the first outputs that are not finite are those of cell 3 '
      r'\(tiny/net/classify, Classify\) of partition 1 on \S*CPU:1, in '
      r'micro-batch [0-3]$',
    )

  def testGradients(self):
    net, batch = self._Make(_Overflowing)
    text = nonfinite.Explain(net, batch, 0)
    self.assertRegex(
      text,
      r'^all outputs are finite, but gradients are not, first those of cell 2 '
      r'\(tiny/net/second, Linear\) of partition \d on \S+: .*'
      'tiny/net/second/w',
    )
    self.assertNotIn('classify/w', text)

  def testFinite(self):
    net, batch = self._Make()
    self.assertStartsWith(
      nonfinite.Explain(net, batch, 0), 'all outputs and gradients are finite'
    )


if __name__ == '__main__':
  absltest.main()
