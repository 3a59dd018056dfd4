"""The ways in: what each of them says, and how each is made.

A way in is a class in a file of its own, and a row in `configuration.WAYS`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from twisted.internet.defer import Deferred
from twisted.web.server import Request

from api_exporter.access.credentials import Credentials
from api_exporter.serving.visibility import Accounts

if TYPE_CHECKING:  # it imports all ways
    from api_exporter.access.configuration import AccessControl

Identity = Accounts | None
"""The accounts that a client may know of; None for a stranger."""

Compare = Callable[[bytes, bytes], Deferred[bool]]
"""Whether a password has a hash; takes long, and is done elsewhere."""

REALM = b'realm="api-exporter"'


class WayIn:
    """A way in. This one asks nobody, and opens nothing."""

    @classmethod
    def configured(cls, access: "AccessControl") -> Self | None:
        """The way, where the settings want it; what is wrong goes to the errors."""
        raise NotImplementedError

    @property
    def asks(self) -> bool:
        """Whether strangers are kept out."""
        return False

    @property
    def in_handshake(self) -> bool:
        """Whether TLS refuses strangers before the first request."""
        return False

    @property
    def challenge(self) -> bytes:
        """The scheme that a 401 offers (RFC 9110, 11.6.1), if any."""
        return b""

    def opens(self, path: str) -> bool:  # noqa: ARG002 - others look at it
        """Whether everybody sees a page."""
        return False

    def identify(
        self,
        request: Request,  # noqa: ARG002 - others look at it
        credentials: Credentials | None,  # noqa: ARG002
        *,
        patient: bool,  # noqa: ARG002
    ) -> Identity | Deferred[Identity]:
        """Return whose request this is; may fail with QueueFull.

        Args:
            credentials: of the Authorization header; None without one.
            patient: whether the client waits behind others.
        """
        return None

    def describe(self) -> str:
        """How somebody comes in, in a line; "" where nobody does."""
        raise NotImplementedError


def client_address(request: Request) -> str:
    return str(getattr(request.getClientAddress(), "host", ""))


class QueueFull(Exception):
    """Too many credentials wait to be looked at."""
