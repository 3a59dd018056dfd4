"""Benchmarks: `python -m benchmarks`; see docs/develop/profiling.md.

Exporter, simulated API and client are separate processes on the loopback interface.
"""
