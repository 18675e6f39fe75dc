"""GPipe (arXiv 1811.06965): partitions, schedule, loops, re-materialization."""
