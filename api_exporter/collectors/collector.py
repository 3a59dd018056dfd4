"""A collector: the families of a subject, and the resources that they need."""

from msgspec import Struct

from api_exporter.collectors.rows import Measure
from api_exporter.exposition.text import Metric


class Collector(Struct, frozen=True):
    """The resources that a collector reads and the families that it makes of them.

    Attributes:
        families: all families that it may publish, known without measuring.
        default: true if it is enabled unless the settings disable it.
    """

    name: str
    reads: tuple[str, ...]
    measure: Measure
    families: tuple[Metric, ...]
    default: bool = True
