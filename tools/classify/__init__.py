"""Classifies pictures."""
