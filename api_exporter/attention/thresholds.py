"""`thresholds.json`: the numbers, severities and groups of findings; lifetimes."""

from functools import cache
from pkgutil import get_data
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from api_exporter.netbird.records import CHOICES

Whole = Annotated[int, Meta(gt=0, le=100_000)]
"""Prometheus cannot compute with many more days than this maximum."""

Share = Annotated[float, Meta(gt=0, lt=1)]
Dollars = Annotated[float, Meta(gt=0)] | None
Requests = Whole | None
Name = Annotated[str, Meta(min_length=1)]
Severity = Literal["critical", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""The most severe first."""

HOUR = 3600.0
DAY = 24 * HOUR


class Groups(Struct, frozen=True, forbid_unknown_fields=True):
    """Names of groups by their role."""

    important: list[Name]
    routers: list[Name]


class Thresholds(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `thresholds.json`.

    Attributes:
        settings: the required values of account settings.
    """

    groups: Groups
    hours: dict[str, Whole]
    days: dict[str, Whole]
    shares: dict[str, Share]
    peers: dict[str, Whole]
    dollars: dict[str, Dollars]
    requests: dict[str, Requests]
    settings: dict[str, bool]
    severities: dict[str, Severity]

    @property
    def of_alerts(self) -> dict[str, float]:
        """The thresholds that alerts compare with, as no finding does, by their names.

        They have no series where there is no limit.
        """
        numbers = {
            "days.management_update": self.days["management_update"],
            "requests.logins_refused": self.requests["logins_refused"],
        }
        return {name: value for name, value in numbers.items() if value is not None}


_KINDS = {
    table.name: list[Name] if table.type is Groups else get_args(table.type)[1]
    for table in fields(Thresholds)
}
"""The type of the values in each table."""

_OF_NAMES = {"management_update": Annotated[int, Meta(gt=0, le=100)]}
"""The types of single values: the alert of this one looks back 100 days."""


@cache
def default_thresholds() -> Thresholds:
    text = get_data("api_exporter", "thresholds.json") or b""
    return msgspec.json.decode(text, type=Thresholds)


_MAX_SHOWN = 8
"""Characters of a wrong value that an error repeats. A longer value may be a secret."""


def with_changes(text: bytes) -> Thresholds:
    """Return the shipped thresholds with a file's values applied; raises ValueError."""
    known: dict[str, dict[str, object]] = msgspec.to_builtins(default_thresholds())
    try:
        given = msgspec.json.decode(text, type=dict[str, dict[str, object]])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    names_of = {table: (*own,) for table, own in known.items()}
    names_of["settings"] = CHOICES
    for table, own in given.items():
        if table not in known:
            raise ValueError(f"{table!r:.60} is not one of {', '.join(known)}")
        for name, value in own.items():
            if name not in names_of[table]:
                names = ", ".join(names_of[table])
                problem = f"{table}: {name!r:.60} is not one of {names}"
                if table == "severities":
                    problem += "; an alert without a finding has its severity in the"
                    problem += " rules of Prometheus: change it there"
                raise ValueError(problem)
            try:
                kind = _OF_NAMES.get(name, _KINDS[table])
                known[table][name] = msgspec.convert(value, type=kind)
            except msgspec.ValidationError as error:
                shown = f"{value!r:.60}: " if len(str(value)) <= _MAX_SHOWN else ""
                problem = f"{table}: {name}: {shown}{error}"
                raise ValueError(problem) from None
    return msgspec.convert(known, type=Thresholds)


SOON = 3
"""Something expires soon in the last third of its life."""

VERY_SOON = 9
"""Something expires very soon in the last ninth of its life."""


class Lifetime(Struct, frozen=True):
    """When something begins to be valid and expires, in seconds since the epoch."""

    begins_at: float | None
    ends_at: float

    def is_near_end(self, now: float, limit: float, part: int) -> bool:
        """Return whether the expiry is near, or has passed.

        It is near when less than `limit` seconds are left, and less than a `part`th of
        the life, such as a third. Without this part, something that lives for less than
        `limit` would always be near its expiry.
        """
        left = self.ends_at - now
        if self.begins_at is not None:
            limit = min(limit, (self.ends_at - self.begins_at) / part)
        return left <= 0 or left < limit
