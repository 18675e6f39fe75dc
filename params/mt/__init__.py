"""Registered translation experiments."""
