"""What a resource of the API is made of: a template in JSON, and an instant."""

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data

import msgspec
from msgspec import Struct

from api_exporter.demo.go_json import Record

HOLE = msgspec.Raw(b"\0")
"""Stands in a record for what is filled in later; no encoded text holds this byte."""


class Template(Struct):
    """A resource's file: what of its records stays the same.

    Attributes:
        template: a record, with the fields that every one has.
        records: those that are always there, whole; the file has what differs.
    """

    template: Record
    records: list[Record] = []

    def __post_init__(self) -> None:
        self.records = [self.record(**fields) for fields in self.records]

    def record(self, **fields: object) -> Record:
        """One more record, with these fields in place of the template's."""
        return self.template | fields


@cache
def file(path: str) -> bytes:
    """One of the simulation's files of JSON."""
    return get_data("simulation.company", path) or b""


def load(resource: str) -> Template:
    """A fresh one, which may be changed."""
    return msgspec.json.decode(file(f"templates/{resource}.json"), type=Template)


class Moment(Struct, frozen=True, kw_only=True):
    """An instant, and what depends on the fleet then.

    Attributes:
        at: seconds since the epoch.
        machines: how many the network was asked to have.
        members: of each group, by its id, how many it has at that instant.
        query: what stands behind the path.
    """

    at: float
    machines: int
    members: Mapping[str, int]
    query: str = ""

    def latest(self, period: int, phase: int = 0) -> int:
        """When something that happens every `period` seconds last happened."""
        return int((self.at - phase) // period) * period + phase

    def load(self, resource: str) -> Template:
        """A fresh one, in which groups have as many members as at this instant."""
        template = load(resource)
        self._count(template.records)
        return template

    def _count(self, value: object) -> None:
        if isinstance(value, dict):
            if "peers_count" in value:
                value["peers_count"] = self.members[value["id"]]
            value = list(value.values())
        for inner in value if isinstance(value, list) else ():
            self._count(inner)
