"""A framework for training giant networks with GPipe pipeline parallelism."""
