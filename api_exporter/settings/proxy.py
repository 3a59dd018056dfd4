"""The address of a proxy. User and password are not shown by accident."""

import re
from base64 import b64encode
from typing import Literal
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from msgspec import Struct

from api_exporter.settings import parsers
from api_exporter.settings.addresses import Address
from api_exporter.settings.token import Token

NO_PROXY_WORD: Literal["none"] = "none"

DEFAULT_PORTS = {"http": 80, "https": 443}

_MIN_SECRET_LENGTH = 4
"""The minimum length of a password that errors mask. Shorter ones match other text."""


class Login(Struct, frozen=True):
    """The header with user and password, and the secret texts in it."""

    header: Token
    secrets: tuple[Token, ...]


class Proxy(Struct, frozen=True, kw_only=True):
    """A proxy and the exporter's login.

    Attributes:
        host: a name, or an address without brackets.
        login: None if the proxy needs none.
    """

    host: str
    port: int
    login: Login | None = None

    def __str__(self) -> str:
        return str(Address(self.host, self.port))

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not be shown."""
        hidden = () if self.login is None else self.login.secrets
        return tuple(secret.reveal() for secret in hidden)


def proxy(text: str) -> Proxy:
    """Parse `proxy.example:3128` or `http://user:password@proxy.example`.

    Raises ValueError, which repeats no part: a password may be anywhere.
    """
    if not text.isprintable() or " " in text:
        raise ValueError("a space or control character is not allowed")
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError("write % in user or password as %25")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise ValueError("the port must be a number up to 65535") from None
    if parts.scheme != "http":
        raise ValueError("the scheme must be http, also for an https API")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError(
            "nothing may follow the port; in user and password write / ? and # as %2F"
            " %3F and %23"
        )
    if not parts.hostname:
        raise ValueError("the address has no host")
    if port == 0:
        raise ValueError("port 0 is not allowed")
    try:
        host = parsers.hostname(parts.hostname).strip("[]")
    except ValueError:
        raise ValueError("the host must be a name or an address") from None
    return Proxy(host=host, port=port or DEFAULT_PORTS["http"], login=_login(parts))


def _login(parts: SplitResult) -> Login | None:
    if parts.username is None:
        return None
    password = unquote_to_bytes(parts.password or "")
    user = unquote_to_bytes(parts.username)
    packed = b64encode(user + b":" + password).decode("ascii")
    shown = password.decode(errors="replace")
    secrets = [
        packed,
        *({shown, parts.password or ""} if len(shown) >= _MIN_SECRET_LENGTH else ()),
    ]
    return Login(Token(f"Basic {packed}"), tuple(map(Token, secrets)))


def proxy_or_none(text: str) -> "Proxy | Literal['none']":
    """Parse the address of a proxy, or `none`."""
    return NO_PROXY_WORD if text.lower() == NO_PROXY_WORD else proxy(text)
