"""Subjects, one file each: records, resources, families, findings; the table."""

from typing import Any

from msgspec import Struct

from api_exporter.attention.finding import Finder
from api_exporter.collectors.collector import Collector
from api_exporter.collectors.rows import Row
from api_exporter.netbird.resources import Resource


class Subject(Struct, frozen=True):
    """The content of a subject's file."""

    module: str
    resources: tuple[Resource[Any], ...] = ()
    families: tuple[Row, ...] = ()
    finders: tuple[Finder, ...] = ()
    default: bool = True

    def collector(self) -> Collector:
        return Collector(self.module.rpartition(".")[2], self.families, self.default)
