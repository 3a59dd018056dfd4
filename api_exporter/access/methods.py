"""Authentication methods: their base class, and those that compare no secret.

`configuration.AccessControl` makes all methods.
"""

from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.web.server import Request

from api_exporter.access.credentials import Credentials
from api_exporter.access.reloading import Reloader
from api_exporter.serving.visibility import Accounts
from api_exporter.settings.errors import ConfigurationError, quote_value

if TYPE_CHECKING:
    from api_exporter.access.web_config import WebConfig

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


class ClientCertificates(AuthenticationMethod):
    """Client certificates, which OpenSSL requests before the first byte of HTTP.

    `tls_server_config` of the web configuration file requires them.
    """

    def __init__(self, web: "Reloader[WebConfig]") -> None:
        self._web = web

    @property
    def is_required(self) -> bool:
        tls = self._web.value.tls
        return tls is not None and tls.client_auth.required

    @property
    def in_handshake(self) -> bool:
        return True

    def describe(self) -> str:
        tls = self._web.value.tls
        return "" if tls is None else f"TLS, {tls.client_auth.description}"


_INCLUDED = {"/sd": {"/sd/accounts"}, "/lookup": {"/lookup.csv", "/lookup.json"}}
"""Open paths besides that of the metrics, and those that they include."""


class OpenPaths(AuthenticationMethod):
    """WEB_OPEN_PATHS: pages that need no credentials, although others do.

    A forbidden path raises ConfigurationError.
    """

    def __init__(self, paths: Set[str], metrics_path: str) -> None:
        for path in sorted(paths - {metrics_path, *_INCLUDED}):
            raise ConfigurationError(
                f"WEB_OPEN_PATHS: {quote_value(path)} is not allowed: it must be"
                f" {metrics_path}, /sd or /lookup"
            )
        included = (more for path, more in _INCLUDED.items() if path in paths)
        self._paths = frozenset(paths).union(*included)

    @property
    def is_required(self) -> bool:
        return False

    def is_open(self, path: str) -> bool:
        return path in self._paths

    def describe(self) -> str:
        paths = ", ".join(sorted(self._paths))
        return f"no password or token required: {paths}" if paths else ""
