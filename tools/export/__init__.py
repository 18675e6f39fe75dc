"""Exports trained models."""
