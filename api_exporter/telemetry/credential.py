"""What is known of the files with token and certificate."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge


def token_readable(registry: CollectorRegistry, readable: Callable[[], bool]) -> None:
    """A gauge for an account whose token is in a file."""
    Gauge(
        "api_exporter_token_readable",
        "Whether the token file could be read when it was last wanted.",
        registry=registry,
    ).set_function(readable)


def certificate_readable(
    registry: CollectorRegistry, readable: Callable[[], bool]
) -> None:
    """One for an account that shows a certificate of ours."""
    Gauge(
        "api_exporter_client_certificate_readable",
        "Whether our own certificate and its key could be read, and belong together,"
        " when they were last looked at.",
        registry=registry,
    ).set_function(readable)
