"""The inputs of a resource: a template in JSON, and a time."""

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data

import msgspec
from msgspec import Struct

from api_exporter.demo.go_json import Record

HOLE = msgspec.Raw(b"\0")
"""A placeholder for values that are filled in later. No encoded text has this byte."""


class Template(Struct):
    """The file of a resource: the constant part of its records.

    Attributes:
        template: a record with the fields that every record has.
        records: the permanent records, completed from the template.
    """

    template: Record
    records: list[Record] = []

    def __post_init__(self) -> None:
        self.records = [self.record(**fields) for fields in self.records]

    def record(self, **fields: object) -> Record:
        """Return a record with these fields in place of the template's."""
        return self.template | fields


@cache
def read_file(path: str) -> bytes:
    """Return a JSON file of the simulation."""
    return get_data("simulation.company", path) or b""


def load(resource: str) -> Template:
    """Return a new template, which the caller may change."""
    return msgspec.json.decode(read_file(f"templates/{resource}.json"), type=Template)


class Moment(Struct, frozen=True, kw_only=True):
    """A time, and the values that depend on the fleet then.

    Attributes:
        at: seconds since the epoch.
        machines: the requested number of machines.
        members: the number of members of each group, by its id.
        query: the query of the request.
    """

    at: float
    machines: int
    members: Mapping[str, int]
    query: str = ""

    def latest(self, period: int, phase: int = 0) -> int:
        """Return the last time of an event that happens every `period` seconds."""
        return int((self.at - phase) // period) * period + phase

    def load(self, resource: str) -> Template:
        """Return a new template, in which groups have their numbers of members."""
        template = load(resource)
        self._set_counts(template.records)
        return template

    def _set_counts(self, value: object) -> None:
        if isinstance(value, dict):
            if "peers_count" in value:
                value["peers_count"] = self.members[value["id"]]
            value = list(value.values())
        for inner in value if isinstance(value, list) else ():
            self._set_counts(inner)
