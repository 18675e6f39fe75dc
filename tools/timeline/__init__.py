"""Looks at recorded steps."""
