"""Launcher, inspection and data tools."""
