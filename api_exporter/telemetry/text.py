"""Our own metrics as text, one registry after the other."""

from prometheus_client import CollectorRegistry, disable_created_metrics, exposition
from prometheus_client.openmetrics import exposition as openmetrics

_END = b"# EOF\n"


def text(*registries: CollectorRegistry, in_openmetrics: bool) -> bytes:
    """All of them in one of the formats; OpenMetrics ends with its `# EOF`."""
    disable_created_metrics()  # `_created` lines double the page and tell nothing
    if not in_openmetrics:
        return b"".join(map(exposition.generate_latest, registries))
    texts: list[bytes] = [openmetrics.generate_latest(one) for one in registries]
    return b"".join(one.removesuffix(_END) for one in texts) + _END
