"""What is known of the token's file."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge


def token_readable(registry: CollectorRegistry, readable: Callable[[], bool]) -> None:
    """A gauge for an account whose token is in a file."""
    Gauge(
        "api_exporter_token_readable",
        "Whether the token file could be read when it was last wanted.",
        registry=registry,
    ).set_function(readable)
