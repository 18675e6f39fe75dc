"""The largest model that fits: the GPipe paper's Table 1."""
