"""Models as lists of cells, input pipelines, metrics."""
