"""Plans pipelines."""
