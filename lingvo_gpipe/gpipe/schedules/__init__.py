"""Schedules: in which order passes come, as tables."""
