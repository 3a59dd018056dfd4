"""Idle connections: which one to close if there are too many. It uses no sockets."""

from typing import Generic, TypeVar

C = TypeVar("C")


class IdleConnections(Generic[C]):
    """Connections without a request, by the client's host.

    `pop` chooses the host with the most connections, and of these the longest idle one.
    So a host with many connections harms only itself.
    """

    def __init__(self) -> None:
        self._by_host: dict[str, dict[C, None]] = {}

    def add(self, connection: C, host: str) -> None:
        self._by_host.setdefault(host, {})[connection] = None

    def discard(self, connection: C, host: str) -> None:
        """Remove a connection if it is idle."""
        of_host = self._by_host.get(host, {})
        of_host.pop(connection, None)
        if not of_host:
            self._by_host.pop(host, None)

    def pop(self) -> C | None:
        """Remove and return the connection to close; None if none is idle."""
        if not self._by_host:
            return None
        host = max(self._by_host, key=lambda host: len(self._by_host[host]))
        connection = next(iter(self._by_host[host]))
        self.discard(connection, host)
        return connection
