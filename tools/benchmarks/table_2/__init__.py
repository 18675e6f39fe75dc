"""Throughput over K and M: the GPipe paper's Table 2."""
