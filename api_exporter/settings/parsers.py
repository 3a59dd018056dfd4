"""Parsers: from a setting's text to its value. An error is a ValueError."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import idna
from msgspec import Struct

from api_exporter.attention.thresholds import Thresholds, with_changes
from api_exporter.netbird.records import PERSONAL
from api_exporter.netbird.resources import ACCESS_LOG, ALWAYS_READ, OFF
from api_exporter.settings.errors import ConfigurationError, quote_value
from api_exporter.settings.token import read_setting_file
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME

T = TypeVar("T")

LOG_LEVELS = ("debug", "info", "warning", "error")


def url(text: str) -> str:
    """Parse the base address of the API; a trailing slash is removed."""
    if not text.isprintable() or " " in text:
        raise ValueError("a space or control character is not allowed")
    try:
        parts = urlsplit(text)
    except ValueError:  # its text repeats the value
        raise ValueError("the host cannot be read") from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError("the scheme must be http or https")
    if "@" in parts.netloc:
        raise ValueError("a user or password does not belong here")
    if not parts.hostname:
        raise ValueError("the address has no host")
    if parts.path.strip("/"):
        raise ValueError("leave out the path: /api/… is added")
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        raise ValueError("leave out the query and the fragment")
    try:
        number = parts.port
    except ValueError:
        raise ValueError("the port must be a number up to 65535") from None
    if number == 0:
        raise ValueError("port 0 is not allowed")
    port = "" if number is None else f":{number}"
    host = hostname(parts.hostname)
    return f"{parts.scheme}://{host}{port}"


_PLAIN_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")


def hostname(text: str) -> str:
    """Return an IP address or a name as it is written in a URL.

    Container networks have names with `_`, which domains do not allow.
    """
    if ":" in text:
        if "%" in text:
            raise ValueError("leave out the zone of the address")
        try:
            return f"[{ip_address(text)}]"
        except ValueError:
            raise ValueError("the address of the host is not valid") from None
    if _PLAIN_NAME.fullmatch(text):
        return text
    try:
        return idna.encode(text).decode()
    except idna.IDNAError as error:
        label = r"""( at position \d+ (in|of)| in label)? (['"]).*\3"""  # may be long
        why = re.sub(label, "", str(error))
        raise ValueError(f"the name of the host: {why}") from None


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+", re.ASCII)


def duration(text: str) -> float:
    """Return the seconds of `30s`, `1m30s`, `500ms` or `2h`; always above 0."""
    if re.fullmatch(r"\d+(?:\.\d+)?", text, re.ASCII):
        raise ValueError(f"add a unit: {text}s?" if len(text) < 9 else "add a unit")
    if not _DURATION.fullmatch(text):
        raise ValueError
    parts = re.findall(r"([\d.]+)(h|ms|m|s)", text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0.001 <= seconds <= 366 * 86400:
        raise ValueError("from 1ms to a year")
    return seconds


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if (
            not re.fullmatch(r"\d{1,15}", text, re.ASCII)
            or not low <= int(text) <= high
        ):
            raise ValueError
        return int(text)

    return parse


_BYTES = re.compile(r"(\d{1,12}) ?([kMGT])(i?)B?", re.ASCII | re.IGNORECASE)


def byte_count(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of numbers of bytes; a unit is refused with the number."""

    def parse(text: str) -> int:
        if found := _BYTES.fullmatch(text):
            step = 1024 if found[3] else 1000
            number = int(found[1]) * step ** ("KMGT".index(found[2].upper()) + 1)
            raise ValueError(f"write {number}" if number <= high else "")
        return whole(low, high)(text)

    return parse


_OTHER_PAGES = re.compile(
    r"/(health|ready|debug|findings|lookup(\.csv|\.json)?|runbooks|sd"
    r"|status(\.schema)?\.json)(/.*)?"
)


def metrics_path(text: str) -> str:
    """Parse the path of the metrics, which must not be that of another page."""
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", text) or {".", ".."} & set(
        text.split("/")
    ):
        raise ValueError
    if _OTHER_PAGES.fullmatch(text):
        raise ValueError("another page uses this path")
    return text


def account_id(text: str) -> str:
    """Parse an id that needs no quoting in a query."""
    if not re.fullmatch(r"[A-Za-z0-9._~-]{1,256}", text):
        raise ValueError
    return text


def folder(text: str) -> Path:
    """Return a folder that can be listed."""
    try:
        os.listdir(text)
    except OSError as error:
        raise ConfigurationError(str(error.strerror), retryable=True) from None
    return Path(text)


STANDARD_OUTPUT = Path("-")


def output(text: str) -> Path:
    """Return a file that need not exist, or `-` for standard output."""
    return STANDARD_OUTPUT if text == "-" else file(text)


def file(text: str) -> Path:
    """Return the path of a file, which need not exist."""
    path = Path(text)
    if not path.name:
        raise ValueError("the root folder is not a file")
    try:
        path.absolute()
    except FileNotFoundError:
        message = "the folder of the start was deleted"
        raise ConfigurationError(message, retryable=True) from None
    return path


def named_file(text: str) -> Path:
    """Return the path of a file. A missing file is an error if its name may be a token:
    later errors would repeat the name.
    """
    path = file(text)
    if not os.path.exists(path) and quote_value(text) != repr(str(path)):
        raise ConfigurationError("No such file or directory", retryable=True)
    return path


def split_list(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.split(",")))


def names(text: str) -> tuple[str, ...]:
    """Return the items of a list, each once; raises ValueError if there is none."""
    if not (found := tuple(dict.fromkeys(split_list(text)))):
        raise ValueError("the list is empty")
    return found


def open_paths(text: str) -> frozenset[str]:
    """Return the paths. The path of the metrics decides which are allowed."""
    return frozenset(split_list(text))


def rate_limit(text: str) -> tuple[int, int]:
    """Return requests a minute and burst from `6/500`."""
    rate, slash, burst = text.partition("/")
    if not slash:
        raise ValueError
    return whole(1, 1_000_000)(rate), whole(1, 1_000_000)(burst)


def one_of(*values: str) -> Callable[[str], str]:

    def parse(text: str) -> str:
        if text.lower() not in values:
            raise ValueError
        return text.lower()

    return parse


def optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return the same parser, but an empty text is None."""
    return lambda text: parse(text) if text else None


def personal(text: str) -> frozenset[str]:
    """Return kinds of personal data: all, none, or those of a list."""
    if text.lower() in {"true", "false"}:
        return frozenset(PERSONAL if text.lower() == "true" else ())
    kinds = frozenset(names(text))
    for kind in sorted(kinds.difference(PERSONAL)):
        raise ValueError(
            f"{quote_value(kind, PERSONAL)} is not one of {', '.join(PERSONAL)}"
        )
    return kinds


def log_level(text: str) -> str:
    """Parse a log level; `warn`, as other programs call it, is `warning`."""
    return one_of(*LOG_LEVELS)("warning" if text.lower() == "warn" else text)


def yes_or_no(text: str) -> bool:
    return one_of("true", "false")(text.lower()) == "true"


def intervals(text: str) -> dict[str, float]:
    """Return seconds by resource from `peers=15s,groups=1m`; OFF for `off`."""
    found: dict[str, float] = {}
    for item in split_list(text):
        name, equals, interval = (part.strip() for part in item.partition("="))
        if name not in RESOURCE_BY_NAME:
            raise ValueError(
                f"{quote_value(name, RESOURCE_BY_NAME)} is not one of"
                f" {', '.join(RESOURCE_BY_NAME)}"
            )
        if not equals or name in found:
            raise ValueError(f"{name} needs one duration")
        if interval.lower() == "off":
            if name in ALWAYS_READ:
                raise ValueError(f"{name}: the exporter always needs this resource")
            found[name] = OFF
            continue
        if name == ACCESS_LOG:
            raise ValueError(f"{name}: set ACCESS_LOG_REQUESTS_PER_MINUTE instead")
        try:
            found[name] = duration(interval)
        except ValueError as error:
            raise ValueError(f"{name}: {str(error) or 'no duration'}") from None
        if found[name] < 1:
            raise ValueError(f"{name}: at least 1s")
    return found


def collectors(text: str) -> frozenset[str]:
    default = {c.name for c in COLLECTORS if c.default}
    known = {c.name: {c.name} for c in COLLECTORS} | {"default": default}
    on: set[str] = set()
    for name in names(text):
        if name == "drop_in":
            raise ValueError(
                "drop_in was removed: load"
                " deploy/prometheus/netbird-api-exporter.rules.yml in Prometheus"
            )
        if name not in known:
            if name[:1] in "-!" and name[1:] in known:
                raise ValueError(
                    f"{name}: list all collectors that you want, or leave out metrics"
                    " with METRICS_DENY"
                )
            raise ValueError(
                f"{quote_value(name, known)} is not one of {', '.join(known)}"
            )
        on |= known[name]
    return frozenset(on)


def peer_detail(text: str) -> frozenset[str] | None:
    """Return groups from `groups:a,b`, by name or id; () for `none`, None for `all`."""
    if text.lower() in {"all", "none"}:
        return None if text.lower() == "all" else frozenset()
    word, colon, groups = text.partition(":")
    if not colon or word.strip().lower() != "groups":
        raise ValueError
    return frozenset(names(groups))


def groups(text: str) -> tuple[str, ...]:
    return names(text) if text else ()


_MAX_THRESHOLDS_BYTES = 1024 * 1024


def thresholds(text: str) -> Thresholds:
    """Return the thresholds of a file above the shipped ones."""
    return with_changes(read_setting_file(Path(text), _MAX_THRESHOLDS_BYTES))


def page(text: str) -> str:
    """Return the address of a page, to which an anchor is added, safe in YAML."""
    if not re.fullmatch(r"https?://[\w.:\[\]-]+(/[\w.~%/?&=+,;:@-]*)?", text, re.ASCII):
        raise ValueError
    return text


def patterns(text: str) -> tuple[str, ...]:
    """Return names of metrics, in which `*` matches any text."""
    found = names(text) if text else ()
    for pattern in found:
        if not re.fullmatch(r"[A-Za-z0-9_*]{1,256}", pattern):
            raise ValueError(f"{quote_value(pattern)} is not a metric name")
    return found


class Shard(Struct, frozen=True):
    """One of `total` processes; `number` counts from 0."""

    number: int
    total: int

    def keeps(self, name: str) -> bool:
        """Return whether this process has the account of that name.

        With rendezvous hashing, each name belongs to exactly one process. An additional
        process takes an equal share from the others, and no other account moves.
        """
        return self.number == max(range(self.total), key=lambda n: _weight(n, name))


def _weight(number: int, name: str) -> bytes:
    return blake2b(f"{number}/{name}".encode(), digest_size=8).digest()


def shard(text: str) -> Shard:
    """Parse `0/3`, or `auto/3` with a host name such as `api-exporter-0`."""
    match = re.fullmatch(r"(auto|\d{1,3})/(\d{1,3})", text, re.ASCII)
    if not match:
        raise ValueError
    number, total = match[1], int(match[2])
    if number == "auto":
        host = socket.gethostname()
        ordinal = re.search(r"-(\d{1,3})$", host.partition(".")[0], re.ASCII)
        if not ordinal:
            raise ValueError(f"the host's name {host!r} does not end in - and a number")
        number = ordinal[1]
    if not int(number) < total:
        raise ValueError(f"{number} is not less than {total}")
    return Shard(int(number), total)
