"""Experiments of language models."""
