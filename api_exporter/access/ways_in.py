"""The base class of ways in.

A way in is a class in a file of its own; `configuration.AccessControl` makes it.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.web.server import Request

from api_exporter.access.credentials import Credentials
from api_exporter.serving.visibility import Accounts

Identity = Accounts | None
"""The accounts that a client may know of; None where it is not identified."""

Compare = Callable[[bytes, bytes], Deferred[bool]]
"""Whether a password has a hash; takes long, and is done elsewhere."""

REALM = b'realm="api-exporter"'


class WayIn:
    """An authentication method. This base class refuses every request."""

    @property
    def asks(self) -> bool:
        """Whether requests without valid credentials are refused."""
        return True

    @property
    def in_handshake(self) -> bool:
        """Whether TLS refuses clients before their first request."""
        return False

    @property
    def challenge(self) -> bytes:
        """The scheme that a 401 offers (RFC 9110, 11.6.1), if any."""
        return b""

    def opens(self, path: str) -> bool:  # noqa: ARG002 - others look at it
        """Whether a page needs no credentials."""
        return False

    def identify(
        self,
        request: Request,  # noqa: ARG002 - others look at it
        credentials: Credentials | None,  # noqa: ARG002
        *,
        patient: bool,  # noqa: ARG002
    ) -> Identity | Deferred[Identity]:
        """Return the accounts of the request's client; may fail with QueueFull.

        Args:
            credentials: of the Authorization header; None without one.
            patient: whether the client waits behind others.
        """
        return None

    def describe(self) -> str:
        """Describe in a line what authenticates; "" where nothing does."""
        raise NotImplementedError


def client_address(request: Request) -> str:
    return str(getattr(request.getClientAddress(), "host", ""))


class QueueFull(Exception):
    """Too many credentials wait to be compared."""
