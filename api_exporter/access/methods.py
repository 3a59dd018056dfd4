"""The base class of authentication methods.

A method is a class in a file of its own; `configuration.AccessControl` makes it.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.web.server import Request

from api_exporter.access.credentials import Credentials
from api_exporter.serving.visibility import Accounts

Allowed = Accounts | None
"""The accounts that a client may see; None if the client is not authenticated."""

Compare = Callable[[bytes, bytes], Deferred[bool]]
"""An asynchronous function that returns whether a password matches a hash."""

REALM = b'realm="api-exporter"'


class AuthenticationMethod:
    """An authentication method. This base class refuses every request."""

    @property
    def is_required(self) -> bool:
        """True if requests without valid credentials are refused."""
        return True

    @property
    def in_handshake(self) -> bool:
        """True if TLS refuses clients before their first request."""
        return False

    @property
    def challenge(self) -> bytes:
        """The scheme that a 401 offers (RFC 9110, 11.6.1), if any."""
        return b""

    def is_open(self, path: str) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether a page needs no credentials."""
        return False

    def authenticate(
        self,
        request: Request,  # noqa: ARG002 - for subclasses
        credentials: Credentials | None,  # noqa: ARG002
        *,
        may_wait: bool,  # noqa: ARG002
    ) -> Allowed | Deferred[Allowed]:
        """Return the accounts that the client may see; may fail with QueueFull.

        Args:
            credentials: from the Authorization header; None without one.
            may_wait: True if the request may wait in a queue.
        """
        return None

    def describe(self) -> str:
        """Describe the method in one line; return "" if it is not in use."""
        raise NotImplementedError


def client_address(request: Request) -> str:
    return str(getattr(request.getClientAddress(), "host", ""))


class QueueFull(Exception):
    """Too many passwords wait for a comparison."""
