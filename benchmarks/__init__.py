"""What is fast, measured: `python -m benchmarks`; see docs/internals/benchmarks.md.

Server, upstream and client are processes of their own, all on the loopback interface.
"""
