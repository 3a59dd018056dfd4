"""The web configuration file of Prometheus' exporter-toolkit, checked."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from api_exporter.access import tls_config
from api_exporter.access.reloading import ReadFile, unreadable
from api_exporter.access.tls_config import TlsConfig
from api_exporter.access.yaml_document import Section, YamlDocument
from api_exporter.serving.token_bucket import TokenBucket
from api_exporter.settings.errors import ConfigurationError, quote_value

if TYPE_CHECKING:
    from OpenSSL import SSL

TOP_KEYS = ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")

ALLOWED_HEADERS: Mapping[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Headers that may be set, with their allowed values; empty for any value."""

MAX_BYTES = 64 * 1024
"""The maximum size of the file in bytes: 800 users. Parsing blocks the event loop."""

BCRYPT_HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
"""A bcrypt hash. Its group is the cost: the logarithm of the number of rounds."""


_MAX_DECOY_COST = b"12"
"""The maximum cost of the decoy: unknown users must not delay others."""

_MAX_USUAL_COST = 14
"""The maximum cost without a warning; above it a comparison takes seconds."""


class WebConfig(Struct, frozen=True, kw_only=True):
    """The content of the file.

    Attributes:
        headers: for every response.
        users: the hash of each user's password; empty if passwords are not used.
        decoy: the hash that passwords of unknown users are compared with.
        warnings: values that are allowed, but harmful.
        limit: seconds between two requests, and the number of requests in a burst.
        context: the OpenSSL context made from `tls`.
    """

    tls: TlsConfig | None
    headers: tuple[tuple[bytes, bytes], ...]
    users: Mapping[bytes, bytes]
    decoy: bytes
    warnings: tuple[str, ...]
    limit: tuple[float, int] | None
    bucket: TokenBucket | None
    context: "SSL.Context | None" = None

    def __repr__(self) -> str:
        return "<web configuration>"


def load(path: Path, read: ReadFile) -> WebConfig:
    """Load the file; raise ConfigurationError."""
    try:
        content = read(path)
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if len(content) > MAX_BYTES:
        raise ConfigurationError(f"{path}: the file has more than {MAX_BYTES} bytes")
    document = YamlDocument(str(path), text)
    root = Section(document, document.root, "", TOP_KEYS)
    users = _users(root)
    tls = tls_config.parse(root, path.parent, read)
    headers = _headers(root.section("http_server_config", ("http2", "headers")))
    limit = _limit(root.section("rate_limit", ("interval", "burst")))
    config = WebConfig(
        tls=tls,
        headers=headers,
        users=users,
        decoy=_decoy(users),
        warnings=_warnings(path, users),
        limit=limit,
        bucket=None if limit is None else TokenBucket(*limit),
    )
    if document.problems:
        raise ConfigurationError(*document.problems, retryable=document.retryable)
    return config


def _headers(section: Section) -> tuple[tuple[bytes, bytes], ...]:
    section.check_boolean("http2")
    given = section.section("headers", ALLOWED_HEADERS)
    headers = []
    for name in given.found:
        text, allowed = given.text(name), ALLOWED_HEADERS[name]
        if allowed and text not in allowed:
            message = (
                f"it must be {' or '.join(allowed)}, not {quote_value(text, allowed)}"
            )
            given.reject(name, message)
        elif not re.fullmatch(r"[\x20-\x7e]*", text):
            given.reject(name, "it must be one line of ASCII")
        headers.append((name.encode(), text.encode("ascii", "replace")))
    return tuple(headers)


def _users(root: Section) -> dict[bytes, bytes]:
    key, document = "basic_auth_users", root.document
    users = {}
    for name, value in document.entries(root.found.get(key), key):
        digest = document.text(value, key)
        if not BCRYPT_HASH.fullmatch(digest):
            message = "the password of a user must be a bcrypt hash of 60 characters"
            document.reject(value, key, message)
        elif ":" in name:
            document.reject(value, key, "the name of a user must not contain a colon")
        else:
            users[name.encode()] = digest.encode()
    return users


def _decoy(users: Mapping[bytes, bytes]) -> bytes:
    """Return a hash that matches no password. Its cost is the most frequent one."""
    costs = Counter(digest[4:6] for digest in users.values()) or {b"10": 1}
    cost = min(max(costs, key=lambda cost: (costs[cost], cost)), _MAX_DECOY_COST)
    return b"$2b$" + cost + b"$" + b"." * 53


def _warnings(path: Path, users: Mapping[bytes, bytes]) -> tuple[str, ...]:
    cost = max((int(digest[4:6]) for digest in users.values()), default=0)
    if cost <= _MAX_USUAL_COST:
        return ()
    return (
        f"{path}: basic_auth_users: a hash has cost {cost}. One comparison takes"
        f" about {2**cost // 10_000} seconds and delays all others. Use a cost from"
        " 10 to 12",
    )


def _limit(section: Section) -> tuple[float, int] | None:
    interval, burst = 0.0, 0
    if "interval" in section.found:
        try:
            interval = parse_duration(section.text("interval"))
        except ValueError:
            message = "it must be a duration such as 1s, 1m30s or 100ms; 0 for none"
            section.reject("interval", message)
    if "burst" in section.found:
        text = section.text("burst")
        if re.fullmatch(r"\d{1,9}", text, re.ASCII):
            burst = int(text)
        else:
            section.reject("burst", "it must be a whole number")
    return (interval, burst) if interval else None


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_MAX_SECONDS = 2**63 / 1e9
"""Seconds of the longest duration in Go."""

_DURATION_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration such as `1m30s` or `0`; raise ValueError."""
    if text == "0":
        return 0.0
    if not re.fullmatch(f"({_DURATION_PART})+", text, re.ASCII):
        raise ValueError
    seconds = sum(
        float(number) * _UNITS[re.sub("[µμ]", "u", unit)]
        for number, unit in re.findall(_DURATION_PART, text)
    )
    if seconds > _MAX_SECONDS:
        raise ValueError
    return seconds


def changes_needing_restart(before: WebConfig, now: WebConfig) -> list[str]:
    """Return the changes that need a restart.

    So a reload of a half-written file never disables authentication.
    """
    problems = []
    if (before.tls is None) != (now.tls is None):
        message = "a reload cannot switch TLS on or off: restart the exporter"
        problems.append(f"tls_server_config: {message}")
    elif before.tls is not None and now.tls is not None:
        kept = _certificate_checks(now.tls)
        problems += [
            f"tls_server_config.{key}: a reload cannot stop {message}: restart the"
            " exporter"
            for message, key in _certificate_checks(before.tls).items()
            if message not in kept
        ]
    if before.users and not now.users:
        message = "a reload cannot remove all users: restart the exporter"
        problems.append(f"basic_auth_users: {message}")
    return problems


def _certificate_checks(tls: TlsConfig) -> dict[str, str]:
    checks = {
        "requiring client certificates": ("client_auth_type", tls.client_auth.required),
        "verifying client certificates": ("client_auth_type", tls.is_mutual),
        "using client_ca_file": ("client_ca_file", tls.is_mutual and tls.client_ca),
        "checking client_allowed_sans": ("client_allowed_sans", tls.allowed_sans),
    }
    return {message: key for message, (key, enabled) in checks.items() if enabled}
