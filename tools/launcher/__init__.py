"""What tools/bazelw does before Bazel runs."""
