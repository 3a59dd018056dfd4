"""A page as a mapping: name and labels of a sample, and its value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction

Key = tuple[str, frozenset[tuple[str, str]]]

NOON = 1_779_451_650.0
"""2026-05-22 12:07:30 UTC, of which the made-up bodies tell."""

LONGEST = 4096
"""Bytes of a label's value."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the operator chose.

    Attributes:
        personal: the kinds of personal data that may be told.
        detail: names and ids of the groups whose peers have series of their own; None
            for all peers.
        asked: when the bodies were asked for, seconds since 1970.
        asked_of: the same of single resources that were asked for at another time.
        now: when it is told.
        consumption_interval: seconds between two readings of what agents used.
    """

    personal: frozenset[str] = frozenset()
    detail: frozenset[str] | None = None
    asked: float = NOON
    asked_of: Mapping[str, float] = field(default_factory=dict)
    now: float = NOON
    consumption_interval: float = 600

    def when(self, resource: str) -> float:
        """When a resource was asked for."""
        return self.asked_of.get(resource, self.asked)


class Page(dict[Key, float | Fraction]):
    """The samples of some families."""

    def put(self, family: str, value: float | Fraction | None, /, **of: str) -> None:
        """A sample; none where the value is None."""
        if value is not None:
            self[_key(family, of)] = value

    def add(self, family: str, value: int, /, **of: str) -> None:
        """More of what a sample counts."""
        key = _key(family, of)
        self[key] = self.get(key, 0) + value

    def latest(self, family: str, value: Fraction | None, /, **of: str) -> None:
        """An instant, unless there is a later one."""
        if value is not None:
            key = _key(family, of)
            self[key] = max(self.get(key, value), value)

    def halves(self, family: str, which: Iterable[bool], label: str, /) -> None:
        """How many are true and how many are false."""
        for half in (True, False):
            self.add(family, 0, **{label: boolean(half)})
        for half in which:
            self.add(family, 1, **{label: boolean(half)})

    def states(
        self,
        family: str,
        known: tuple[str, ...],
        current: str,
        label: str,
        /,
        **of: str,
    ) -> None:
        """A state set: the current one is 1, each other known one 0."""
        for state in known:
            self.put(family, 0, **of, **{label: state})
        if current:
            self.put(family, 1, **of, **{label: current})


def date(instant: float) -> str:
    """In UTC."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d")


def boolean(value: bool, /) -> str:
    return "true" if value else "false"


def cut(value: str) -> str:
    """At most so many bytes, and the mark of a cut."""
    if len(value.encode()) <= LONGEST:
        return value
    return value.encode()[: LONGEST - 3].decode(errors="ignore") + "…"


def _key(family: str, of: dict[str, str]) -> Key:
    return family, frozenset((name, cut(value)) for name, value in of.items())
