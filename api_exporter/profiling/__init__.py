"""What this process does with its CPU time, memory and threads, for pprof tools."""

from collections.abc import Awaitable, Callable

InThread = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Runs what would hold up the event loop in another thread."""
