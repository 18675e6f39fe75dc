"""The same stack in Lingvo's GPipe, for peers.py.

Run by a Python that has Lingvo; this project needs neither Lingvo nor this
file. It speaks the protocol of peer_process.py. Lingvo's pipeline lives in one
process: its partitions are logical devices, which share the process's threads,
here on as many cores as there are partitions. It has one schedule (fill and
drain), and always recomputes partitions.
"""

from __future__ import annotations

import json
import os
import sys


def Main() -> None:
  """Builds all configurations, then runs the steps it is asked for."""
  setup = json.loads(sys.stdin.readline())
  # Before TensorFlow starts its threads, as many as there are cores.
  os.sched_setaffinity(0, set(setup['cores']))
  os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
  # Standard output belongs to the protocol.
  answers = os.fdopen(os.dup(1), 'w')
  os.dup2(2, 1)
  import importlib.metadata

  import numpy as np

  with np.load(setup['arrays']) as arrays:
    arrays = dict(arrays)
  steps = {
    config['name']: _MakeStep(setup, config['num_micro_batches'], arrays)
    for config in setup['configs']
  }

  def _Say(**values):
    print(json.dumps(values), file=answers, flush=True)

  _Say(ready=importlib.metadata.version('lingvo'))
  for line in sys.stdin:
    _Say(loss=steps[line.strip()]())


def _MakeStep(setup, num_micro_batches, arrays):
  """A function that runs a step of SGD and returns the loss."""
  import lingvo.compat as tf
  from lingvo.core import cluster_factory, gpipe, py_utils

  k = setup['num_partitions']
  with tf.Graph().as_default():
    options = tf.compat.v1.ConfigProto(device_count={'CPU': k})
    session = tf.Session(config=options)
    with (
      cluster_factory.ForTestingWorker(
        mode='sync', job='trainer_client', cpus=k, split_size=k
      ) as cluster,
      session.as_default(),
    ):
      cluster.InitDevices(session)
      py_utils.GetOrCreateGlobalStepVar()
      layer = (
        gpipe.PipeliningLayer.Params()
        .Set(
          name='stack',
          num_micro_batches=num_micro_batches,
          cell_tpl=_Cells(setup),
        )
        .Instantiate()
      )
      inputs, labels = (
        tf.Variable(arrays[name], trainable=False)
        for name in ('inputs', 'labels')
      )
      loss = tf.reduce_mean(tf.square(layer.FPropDefaultTheta(inputs) - labels))
      variables = layer.vars.Flatten()
      gradients = tf.gradients(loss, variables)
      with tf.control_dependencies(gradients):
        update = tf.group(
          *(
            variable.assign_sub(setup['learning_rate'] * gradient)
            for variable, gradient in zip(variables, gradients, strict=True)
          )
        )
      session.run(tf.global_variables_initializer())
      for variable in variables:
        variable.load(arrays['/'.join(_Place(variable.name))], session)
  fetches = (loss, update)
  return lambda: float(session.run(fetches)[0])


def _Place(variable_name):
  """'.../block_3/qkv/var:0' -> ['block_3', 'qkv']."""
  return variable_name.removesuffix('/var:0').split('/')[-2:]


def _Cells(setup):
  """Params of the partitions."""
  import lingvo.compat as tf
  from lingvo.core import base_layer, gpipe, py_utils

  d, f, heads = setup['model_dim'], setup['ffn_dim'], setup['heads']

  def _Norm(x, scale):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * scale

  class Block(base_layer.BaseLayer):
    def _CreateLayerVariables(self):
      super()._CreateLayerVariables()
      for name, shape in (
        ('qkv', [d, 3 * d]),
        ('post', [d, d]),
        ('hidden', [d, f]),
        ('output', [f, d]),
        ('attention_scale', [d]),
        ('ffn_scale', [d]),
      ):
        self.CreateVariable(
          name,
          py_utils.WeightParams(
            shape, py_utils.WeightInit.Constant(0.0), tf.float32
          ),
        )

    def FProp(self, theta, inputs):
      batch, tokens, _ = inputs.shape.as_list()
      rows = [batch * tokens, d]
      x = tf.reshape(_Norm(inputs, theta.attention_scale), rows)
      qkv = tf.reshape(
        tf.matmul(x, theta.qkv), [batch, tokens, 3, heads, d // heads]
      )
      q, k, v = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
      q *= (d // heads) ** -0.5
      weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
      x = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
      x = tf.matmul(tf.reshape(x, rows), theta.post)
      x = inputs + tf.reshape(x, inputs.shape)
      y = tf.reshape(_Norm(x, theta.ffn_scale), rows)
      y = tf.matmul(tf.nn.relu(tf.matmul(y, theta.hidden)), theta.output)
      return x + tf.reshape(y, inputs.shape)

    @classmethod
    def FPropMeta(cls, unused_params, inputs):
      return py_utils.NestedMap(flops=1, out_shapes=(inputs,))

  blocks = [
    Block.Params().Set(name=f'block_{i}') for i in range(setup['layers'])
  ]
  cells = []
  for k, count in enumerate(setup['blocks']):
    mine, blocks = blocks[:count], blocks[count:]
    cells.append(
      gpipe.FeatureExtractionLayer.Params().Set(name=f'cell_{k}', sub=mine)
    )
  return cells


if __name__ == '__main__':
  Main()
