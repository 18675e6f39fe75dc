"""The size of mini-batches: the GPipe paper's Table 5."""
