"""Times of the access log: nanoseconds since the epoch. Pure."""

import re
from datetime import UTC, datetime

import msgspec

SECOND = 1_000_000_000
"""Nanoseconds."""

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)"
)


def nanoseconds(timestamp: str) -> int:
    """Since the epoch; 0 where there is no such time."""
    if (match := _TIME.fullmatch(timestamp)) is None:
        return 0
    try:
        time = msgspec.convert(match[1] + match[3], datetime)
    except msgspec.ValidationError:
        return 0
    fraction = int((match[2] or "0").ljust(9, "0"))
    return max(0, int(time.timestamp()) * SECOND + fraction)


def written(time: int) -> str:
    """A time as the upstream takes it: it knows UTC only, and `Z` for it."""
    seconds, fraction = divmod(time, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}Z"
