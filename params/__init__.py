"""Registered experiments: data and sizes, no logic."""
