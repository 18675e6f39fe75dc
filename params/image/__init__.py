"""Registered image classification experiments."""
