"""Benchmarks: `python -m benchmarks`; see docs/internals/benchmarks.md.

Exporter, simulated API and client are separate processes on the loopback interface.
"""
