"""A page as a mapping: name and labels of a sample, and its value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction

from tests.reference.fields import Record, instant

Key = tuple[str, frozenset[tuple[str, str]]]

NOON = 1_779_451_650.0
"""2026-05-22 12:07:30 UTC, the time of the made-up bodies."""

PREFIX = "netbird_api_"
"""Begins the name of every family."""

MAX_LABEL_BYTES = 4096
"""The maximum of a label value's bytes."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings, and the times of requests and of the page.

    Attributes:
        personal: the published kinds of personal data.
        detail: names and ids of the groups whose peers have series of their own; None
            for all peers.
        asked_of: times of single resources' requests, if another than `asked`.
        now: the time of the page, seconds since 1970.
        consumption_interval: seconds between two requests for the agents' consumption.
    """

    personal: frozenset[str] = frozenset()
    detail: frozenset[str] | None = None
    asked: float = NOON
    """When the bodies were requested, seconds since 1970."""
    asked_of: Mapping[str, float] = field(default_factory=dict)
    now: float = NOON
    consumption_interval: float = 600

    def when(self, resource: str) -> float:
        """Return when a resource was requested."""
        return self.asked_of.get(resource, self.asked)


class Page(dict[Key, float | Fraction]):
    """Samples of families."""

    def put(self, family: str, value: float | Fraction | None, /, **of: str) -> None:
        """Set a sample, unless the value is None."""
        if value is not None:
            self[_key(family, of)] = value

    def time(self, family: str, record: Record, field: str, /, **of: str) -> None:
        """Set the instant of a field, unless that is "never"."""
        self.put(f"{family}_timestamp_seconds", instant(record, field), **of)


def date(instant: float) -> str:
    """Return the date in UTC."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d")


def boolean(value: bool, /) -> str:
    return "true" if value else "false"


def cut(value: str) -> str:
    """Return a text of at most MAX_LABEL_BYTES, with a mark if it was cut."""
    if len(value.encode()) <= MAX_LABEL_BYTES:
        return value
    return value.encode()[: MAX_LABEL_BYTES - 3].decode(errors="ignore") + "…"


def _key(family: str, of: dict[str, str]) -> Key:
    name = family if family.startswith("api_exporter_") else PREFIX + family
    return name, frozenset((label, cut(value)) for label, value in of.items())
