"""The exporter's own metrics as text, one registry after the other.

prometheus_client renders the same text, but checks each letter of each name. With many
accounts, that check takes most of the processor time.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.core import Metric
from prometheus_client.utils import floatToGoString

from api_exporter.exposition.text import labels, unit
from api_exporter.telemetry.gauges import CallbackFamily


def text(*registries: CollectorRegistry, in_openmetrics: bool) -> bytes:
    """Return the metrics of registries as text; OpenMetrics ends with `# EOF`."""
    disable_created_metrics()  # `_created` lines double the page and are not used
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
        yield metric.lines()
        return
    for sample in metric.samples:
        pairs = dict(sorted(sample.labels.items()))
        label_text = labels(**pairs) if pairs else ""
        yield f"{sample.name}{label_text} {floatToGoString(sample.value)}\n"
