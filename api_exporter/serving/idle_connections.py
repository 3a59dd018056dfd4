"""Idle connections: which one goes when there is no room. Knows no socket."""

from typing import Generic, TypeVar

C = TypeVar("C")


class IdleConnections(Generic[C]):
    """Connections on which nothing is asked, by the host at the other end.

    Whoever holds many is in nobody's way but its own: it is the host with the most
    that loses one, and of these the one that has been idle for longest.
    """

    def __init__(self) -> None:
        self._by_host: dict[str, dict[C, None]] = {}

    def add(self, connection: C, host: str) -> None:
        """It is idle from now on."""
        self._by_host.setdefault(host, {})[connection] = None

    def discard(self, connection: C, host: str) -> None:
        """It is not idle any more, if it was."""
        of_host = self._by_host.get(host, {})
        of_host.pop(connection, None)
        if not of_host:
            self._by_host.pop(host, None)

    def pop(self) -> C | None:
        """Take out the one that goes; None where none is idle."""
        if not self._by_host:
            return None
        host = max(self._by_host, key=lambda host: len(self._by_host[host]))
        connection = next(iter(self._by_host[host]))
        self.discard(connection, host)
        return connection
