"""Benchmarks: `python -m checks.benchmarks`; see docs/develop/profiling.md.

Exporter, simulated API and client are separate processes on the loopback interface.
"""
