"""How work gets into a thread of its own: it is handed in."""

from collections.abc import Awaitable, Callable

InThread = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Runs what would hold up the event loop in another thread."""
