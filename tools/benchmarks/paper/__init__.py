"""What the folders table_1 to table_5 share: the paper's figures, output."""
