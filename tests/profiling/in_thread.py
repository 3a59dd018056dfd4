"""Threads for tests: none."""

from collections.abc import Callable

from twisted.internet.defer import Deferred, execute


def at_once(work: Callable[[], bytes]) -> Deferred[bytes]:
    """Do it here and now."""
    return execute(work)
