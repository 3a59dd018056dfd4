"""A subject: something of the network, and all that the exporter does about it."""

from typing import Any

from msgspec import Struct

from api_exporter.attention.finding import Finder
from api_exporter.collectors.collector import Collector
from api_exporter.collectors.rows import Row, measure_function
from api_exporter.netbird.resources import Resource


class Subject(Struct, frozen=True):
    """The content of a subject's file.

    Attributes:
        module: the name of the module.
        default: true if its collector is enabled unless the settings disable it.
    """

    module: str
    resources: tuple[Resource[Any], ...] = ()
    families: tuple[Row, ...] = ()
    finders: tuple[Finder, ...] = ()
    default: bool = True

    def collector(self) -> Collector:
        name = self.module.rpartition(".")[2]
        reads = dict.fromkeys(need for row in self.families for need in row.needs)
        return Collector(
            name,
            tuple(reads),
            measure_function(self.families),
            tuple(row.metric for row in self.families),
            self.default,
        )
