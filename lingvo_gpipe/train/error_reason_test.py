"""Tests for error_reason."""

from __future__ import annotations

import tensorflow as tf
from absl.testing import absltest

from lingvo_gpipe.train import error_reason


class ErrorReasonTest(absltest.TestCase):
  def testTheReasonOfAnErrorOfTensorflow(self):
    message = (
      'Graph execution error:\n\nDetected at node SaveV2_1 defined at (most '
      'recent call last):\n  File "threading.py", line 1, in run\n\n  File '
      '"saver.py", line 5, in save\n\n/a/b.data; No space left\non device\n\t '
      '[[{{node SaveV2_1}}]]\nAdditional GRPC error information from remote '
      'target /job:worker:\n:UNKNOWN:Error {grpc_status:11}\n\t '
      '[[SaveV2_1/_15]] [Op:__inference_tf_function_save_5]'
    )
    self.assertEqual(
      error_reason.Reason(tf.errors.UnknownError(None, None, message)),
      '/a/b.data; No space left on device',
    )
    message = (
      '2 root error(s) found.\n  (0) OUT_OF_RANGE: /a/b.data; File too large\n'
      '\t [[{{node SaveV2_1}}]]\n  (1) CANCELLED: because of it\n'
    )
    self.assertEqual(
      error_reason.Reason(tf.errors.OutOfRangeError(None, None, message)),
      '/a/b.data; File too large',
    )
    self.assertEqual(
      error_reason.Reason(OSError(28, 'No space left', '/a/b')),
      "[Errno 28] No space left: '/a/b'",
    )
    with self.assertRaises(tf.errors.OpError) as caught:
      tf.io.read_file('/no/such/file')
    self.assertEqual(
      error_reason.Reason(caught.exception),
      '/no/such/file; No such file or directory',
    )


if __name__ == '__main__':
  absltest.main()
