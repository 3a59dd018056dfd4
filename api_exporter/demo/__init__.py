"""A simulated NetBird management API, for `--demo`, the tests and the benchmarks."""
