"""Layers, a file per family."""
