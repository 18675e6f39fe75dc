"""Language models: tokens, a decoder-only Transformer, its loss."""
