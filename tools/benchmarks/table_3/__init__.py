"""Throughput over slow links: the GPipe paper's Table 3."""
