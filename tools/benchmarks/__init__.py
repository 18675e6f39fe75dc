"""Measures pipelines: speed, memory, and other frameworks beside them."""
