"""Acceptance, benchmarks, a fuzzer and mutants: they try the product or its tests."""
