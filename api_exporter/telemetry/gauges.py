"""Metrics computed at each scrape, and the gauges of an account."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from api_exporter.exposition.pages import Pages
from api_exporter.exposition.text import labels, unit
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import PEERS

Value = float | Mapping[str, float] | Mapping[tuple[str, ...], float] | None


class OwnFamily(NamedTuple):
    """A row of the tables of own metrics.

    Its numbers are plain ones: a `Counter` takes a kilobyte a series.

    Attributes:
        read: returns a number, numbers by the values of the labels, or None for no
            family. It is called at each scrape.
        created: when a counter was 0, in seconds since 1970; None for a gauge.
    """

    name: str
    help: str
    read: Callable[[], Value]
    labels: tuple[str, ...] = ()
    created: float | None = None


class OwnMetrics(Collector):
    """The metrics of a table."""

    def __init__(self, registry: CollectorRegistry, *families: OwnFamily) -> None:
        self._families = families
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            value = family.read()
            if value is not None:
                numbers = value if isinstance(value, Mapping) else {(): value}
                yield CallbackFamily(family, numbers)


class CallbackFamily(Metric):
    """A family of plain numbers by the values of its labels.

    `lines` renders it without `Sample` objects, which would take most of the time of a
    page.
    """

    def __init__(self, family: OwnFamily, numbers: Mapping[Any, float]) -> None:
        self.name, self.documentation, _, self._labels, self._created = family
        is_counter = self._created is not None
        self.type = "counter" if is_counter else "gauge"
        self._sample_name = f"{self.name}_total" if is_counter else self.name
        self.unit = ""
        self._numbers = numbers

    @cached_property
    def samples(self) -> list[Sample]:  # type: ignore[override]
        """The samples for other readers of the registry."""
        found = []
        for key, number in self._numbers.items():
            values = _label_values(self._labels, key)
            found.append(Sample(self._sample_name, values, number))
            if self._created is not None:
                found.append(Sample(f"{self.name}_created", values, self._created))
        return found

    def lines(self, *, in_openmetrics: bool) -> str:
        """Return a line for each number, and in OpenMetrics one for its creation."""
        name, created = self._sample_name, ""
        if in_openmetrics and self._created is not None:
            created = _value_text(self._created)
        lines = []
        for key, number in self._numbers.items():
            text = _label_text(self._labels, key)
            lines.append(f"{name}{text} {_value_text(number)}\n")
            if created:
                lines.append(f"{self.name}_created{text} {created}\n")
        return "".join(lines)


_value_text = lru_cache(1024)(floatToGoString)
"""Most values are 0, 1 or an interval, in all accounts."""


@lru_cache(1024)  # names of resources and reasons, shared by all accounts
def _label_text(names: tuple[str, ...], key: str | tuple[str, ...]) -> str:
    return labels(**dict(sorted(_label_values(names, key).items()))) if names else ""


def _label_values(names: tuple[str, ...], key: str | tuple[str, ...]) -> dict[str, str]:
    values = (key,) if isinstance(key, str) else key
    return dict(zip(names, values, strict=True))


def register_resource_gauges(
    registry: CollectorRegistry,
    states: Mapping[str, ResourceState],
    budget: Callable[[], float | None],
) -> None:
    def by_resource(value: Callable[[ResourceState], float | None]) -> dict[str, float]:
        values = ((name, value(one)) for name, one in states.items())
        return {name: known for name, known in values if known is not None}

    def unknown_values() -> Mapping[tuple[str, ...], float]:
        return Counter(
            (resource, field)
            for resource, known in states.items()
            for field, _ in known.unknown.values
        )

    OwnMetrics(
        registry,
        OwnFamily(
            "netbird_api_up",
            "Whether the last attempt to read the peers succeeded and their metrics"
            " have not expired (1 = yes, 0 = no; the peers may be withheld)",
            lambda: states[PEERS].up,
        ),
        OwnFamily(
            "api_exporter_request_budget_per_minute",
            "Requests a minute that the exporter allows itself for the token (absent"
            " while no limit is known)",
            budget,
        ),
        *(
            OwnFamily(name, text, partial(by_resource, value), ("resource",))
            for name, text, value in _RESOURCE_GAUGES
        ),
        OwnFamily(
            "api_exporter_unknown_values",
            "Number of different values of a field that this version does not know, of"
            " an enumeration or of another type (absent without such values)",
            lambda: unknown_values() or None,
            ("resource", "field"),
        ),
    )


_RESOURCE_GAUGES: tuple[
    tuple[str, str, Callable[[ResourceState], float | None]], ...
] = (
    (
        "api_exporter_resource_up",
        "Whether the last refresh of the resource succeeded and its metrics have not"
        " expired (1 = yes, 0 = no)",
        lambda s: s.up if s.error or s.supported is not False else None,
    ),
    (
        "api_exporter_resource_supported",
        "Whether the NetBird API offers all of the resource to this token (1 = yes, 0 ="
        " no, or no object needs it)",
        lambda s: s.supported,
    ),
    (
        "api_exporter_resource_records",
        "Number of records in the last successful response",
        lambda s: s.last_success and s.records,
    ),
    (
        "api_exporter_resource_rejected_records",
        "Number of records in the last successful response that the exporter could not"
        " decode and left out",
        lambda s: s.last_success and s.rejected,
    ),
    (
        "api_exporter_unknown_fields",
        "Number of different field names in inspected records that this version does"
        " not know",
        lambda s: s.last_success and len(s.unknown.fields),
    ),
    (
        "api_exporter_resource_last_success_timestamp_seconds",
        "Time of the last successful refresh of the resource, in seconds since 1970",
        lambda s: s.last_success,
    ),
    (
        "api_exporter_resource_refresh_interval_seconds",
        "Interval between two refreshes of the resource, in seconds",
        lambda s: s.interval,
    ),
    (
        "api_exporter_refresh_duration_seconds",
        "Duration of the last refresh of the resource (fetch, decode and render), in"
        " seconds",
        lambda s: s.seconds if s.ended_at is not None else None,
    ),
)


def register_page_gauges(registry: CollectorRegistry, pages: Pages) -> None:
    """Register gauges of the page's size, as a help to set scrape limits."""
    OwnMetrics(
        registry,
        OwnFamily(
            "api_exporter_series",
            "Number of series by collector, without the exporter's own series",
            pages.series,
            ("collector",),
        ),
        OwnFamily(
            "api_exporter_page_bytes",
            "Length of the uncompressed page in bytes, without the exporter's own"
            " metrics",
            lambda: sum(pages.lengths().values()),
        ),
        OwnFamily(
            "api_exporter_cut_labels",
            "Number of label values that the exporter shortened because they were too"
            " long",
            pages.cut_count,
        ),
    )


def register_finding_gauges(
    registry: CollectorRegistry,
    *,
    findings: Callable[[], Mapping[str, int]],
    series: Callable[[], Mapping[tuple[str, ...], float]],
    omitted: Callable[[], Mapping[str, int]],
    thresholds: Callable[[], Mapping[str, float]],
) -> None:
    OwnMetrics(
        registry,
        OwnFamily(
            "api_exporter_attention",
            "Number of findings by severity",
            findings,
            ("severity",),
        ),
        OwnFamily(
            "api_exporter_finding_since_timestamp_seconds",
            "Time since which the finding holds, in seconds since 1970: NetBird's own"
            " time where it has one, else when the exporter first found it",
            lambda: series() or None,
            ("finding", "severity", "object_type", "object_id", "object"),
        ),
        OwnFamily(
            "api_exporter_findings_omitted",
            "Number of findings without a series: above 50 of a name, above 500 of an"
            " account, or with equal labels (absent if 0)",
            lambda: omitted() or None,
            ("finding",),
        ),
        OwnFamily(
            "api_exporter_threshold",
            "Threshold of an alert without a finding (absent without a limit)",
            lambda: thresholds() or None,
            ("threshold",),
        ),
    )


def register_client_gauges(
    registry: CollectorRegistry,
    *,
    upstream_expiry: Callable[[], float | None],
    client_expiry: Callable[[], float | None],
    token_readable: Callable[[], bool | None] = lambda: None,
    certificate_readable: Callable[[], bool | None] = lambda: None,
) -> None:
    OwnMetrics(
        registry,
        OwnFamily(
            "api_exporter_token_readable",
            "Whether the exporter could read the token file at the last attempt (1 ="
            " yes, 0 = no)",
            token_readable,
        ),
        OwnFamily(
            "api_exporter_client_certificate_readable",
            "Whether the exporter could load its client certificate and key at the last"
            " attempt (1 = yes, 0 = no)",
            certificate_readable,
        ),
        OwnFamily(
            "api_exporter_upstream_certificate_expiration_timestamp_seconds",
            "Time when the certificate of the NetBird API expires, in seconds since"
            " 1970, as of the last new connection",
            upstream_expiry,
        ),
        OwnFamily(
            "api_exporter_client_certificate_expiration_timestamp_seconds",
            "Time when the certificate in UPSTREAM_CLIENT_CERT_FILE expires, in seconds"
            " since 1970",
            client_expiry,
        ),
    )


def text(*registries: CollectorRegistry, in_openmetrics: bool) -> bytes:
    """Return the metrics of registries as text; OpenMetrics ends with `# EOF`.

    prometheus_client renders the same text, but checks each letter of each name. With
    many accounts, that check takes most of the processor time.
    """
    lines = [
        line
        for registry in registries
        for metric in registry.collect()
        for line in _lines(metric, in_openmetrics=in_openmetrics)
    ]
    if in_openmetrics:
        lines.append("# EOF\n")
    return "".join(lines).encode()


def _lines(metric: Metric, *, in_openmetrics: bool) -> Iterator[str]:
    name, kind = metric.name, metric.type
    if kind == "counter" and not in_openmetrics:
        name += "_total"
    yield f"# HELP {name} {metric.documentation}\n# TYPE {name} {kind}\n"
    if in_openmetrics and (unit_name := unit(name)):
        yield f"# UNIT {name} {unit_name}\n"
    if isinstance(metric, CallbackFamily):
        yield metric.lines(in_openmetrics=in_openmetrics)
        return
    for sample in metric.samples:
        if not in_openmetrics and sample.name == f"{metric.name}_created":
            continue
        pairs = dict(sorted(sample.labels.items()))
        label_text = labels(**pairs) if pairs else ""
        yield f"{sample.name}{label_text} {floatToGoString(sample.value)}\n"
