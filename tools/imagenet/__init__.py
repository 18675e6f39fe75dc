"""Preparation of ImageNet (ILSVRC2012) from its two archives."""
