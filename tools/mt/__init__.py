"""Prepares and inspects the data of machine translation."""
