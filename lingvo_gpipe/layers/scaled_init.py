"""Initial weights a constant times as large as a layer's usual ones.

In a deep stack of residual layers every layer adds to the stream. Starting each
layer's last matrix smaller, by 1 / sqrt(number of residual layers), keeps the
stream's size independent of the depth (Radford et al., Language Models are
Unsupervised Multitask Learners, 2019).
"""

from __future__ import annotations

from lingvo_gpipe import hyperparams


def ScaledInit(init: hyperparams.Params, factor: float) -> hyperparams.Params:
  """A WeightInit whose values are `factor` times those of `init`."""
  scaled = init.Copy()
  # The scale of variance_scaling is one of the variance.
  is_variance = init.method == 'variance_scaling'
  scaled.scale = init.scale * (factor**2 if is_variance else factor)
  return scaled
