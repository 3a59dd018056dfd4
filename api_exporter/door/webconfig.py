"""The web configuration file of Prometheus' exporter-toolkit, checked."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from yaml.nodes import Node

from api_exporter.door import duration
from api_exporter.door.document import Document
from api_exporter.door.live import Read
from api_exporter.door.tls import Tls, tls
from api_exporter.settings.errors import ConfigurationError

KEYS = ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")

HEADERS: Mapping[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Those that may be set, with the values that they may have, if not any."""

LONGEST = 256 * 1024
"""Bytes of the file: 800 users are 64 kB, and YAML of a megabyte takes seconds."""

HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
"""What bcrypt makes of a password, and the logarithm of what that costs."""


_DECOY_COST = b"12"
"""Of the decoy, at most: guesses of users that do not exist hold nobody up for long."""

_USUAL_COST = 14
"""Above it a comparison takes seconds: there is a warning."""


class WebConfig(Struct, frozen=True, kw_only=True):
    """What the file asks for.

    Attributes:
        headers: for every answer.
        users: the hash of each one's password; none where nobody is asked.
        decoy: what the password of an unknown user is compared with.
        warnings: what is allowed, but hurts.
        limit: seconds between two requests, and how many may come at once.
    """

    tls: Tls | None
    headers: tuple[tuple[bytes, bytes], ...]
    users: Mapping[bytes, bytes]
    decoy: bytes
    warnings: tuple[str, ...]
    limit: tuple[float, int] | None

    def __repr__(self) -> str:
        return "<web configuration>"


def web_config(path: Path, read: Read) -> WebConfig:
    """What the file says now; raises ConfigurationError."""
    try:
        content = read(path)
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: it is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"{path}: {words}", retryable=True) from None
    if len(content) > LONGEST:
        raise ConfigurationError(f"{path}: it has more than {LONGEST} bytes")
    document = Document(str(path), text)
    found = document.section(document.root, "", KEYS)
    users = _users(document, found.get("basic_auth_users"))
    made = WebConfig(
        tls=tls(document, found.get("tls_server_config"), path.parent, read),
        headers=_headers(document, found.get("http_server_config")),
        users=users,
        decoy=_decoy(users),
        warnings=_warnings(path, users),
        limit=_limit(document, found.get("rate_limit")),
    )
    if document.problems:
        raise ConfigurationError(*document.problems, retryable=document.retryable)
    return made


def _headers(document: Document, node: Node | None) -> tuple[tuple[bytes, bytes], ...]:
    section = "http_server_config"
    found = document.section(node, section, ("http2", "headers"))
    document.truth(found.get("http2"), f"{section}.http2")
    section += ".headers"
    headers = []
    given = document.section(found.get("headers"), section, tuple(HEADERS))
    for name, value in given.items():
        key, text, allowed = (
            f"{section}.{name}",
            document.text(value, name),
            HEADERS[name],
        )
        if allowed and text not in allowed:
            words = f"it must be {' or '.join(allowed)}, not {text[:50]!r}"
            document.wrong(value, key, words)
        elif not re.fullmatch(r"[\x20-\x7e]*", text):
            document.wrong(value, key, "it must be one line of ASCII")
        headers.append((name.encode(), text.encode("ascii", "replace")))
    return tuple(headers)


def _users(document: Document, node: Node | None) -> dict[bytes, bytes]:
    section = "basic_auth_users"
    users = {}
    for name, value in document.entries(node, section):
        digest = document.text(value, section)
        if not HASH.fullmatch(digest):
            words = "the password of a user must be a bcrypt hash of 60 characters"
            document.wrong(value, section, words)
        elif ":" in name:
            document.wrong(value, section, "no user's name may hold a colon")
        else:
            users[name.encode()] = digest.encode()
    return users


def _decoy(users: Mapping[bytes, bytes]) -> bytes:
    """A hash of nothing that is known, as dear as most of the users' are."""
    costs = Counter(digest[4:6] for digest in users.values()) or {b"10": 1}
    cost = min(max(costs, key=lambda cost: (costs[cost], cost)), _DECOY_COST)
    return b"$2b$" + cost + b"$" + b"." * 53


def _warnings(path: Path, users: Mapping[bytes, bytes]) -> tuple[str, ...]:
    costs = [int(digest[4:6]) for digest in users.values()]
    if max(costs, default=0) <= _USUAL_COST:
        return ()
    cost, seconds = max(costs), 2 ** max(costs) // 10_000
    return (
        f"{path}: basic_auth_users: a hash has cost {cost}: one comparison takes about"
        f" {seconds} seconds, and all others wait for it; use 10 to 12",
    )


def _limit(document: Document, node: Node | None) -> tuple[float, int] | None:
    section = "rate_limit"
    found = document.section(node, section, ("interval", "burst"))
    interval, burst = 0.0, 0
    if (value := found.get("interval")) is not None:
        try:
            interval = duration.seconds(document.text(value, section))
        except ValueError:
            words = f"it must be {duration.ALLOWED}"
            document.wrong(value, f"{section}.interval", words)
    if (value := found.get("burst")) is not None:
        text = document.text(value, section)
        if re.fullmatch(r"\d{1,9}", text, re.ASCII):
            burst = int(text)
        else:
            document.wrong(value, f"{section}.burst", "it must be a whole number")
    return (interval, burst) if interval else None
