"""GPipe (arXiv 1811.06965): partitioning, schedule, re-materialization, loops."""
