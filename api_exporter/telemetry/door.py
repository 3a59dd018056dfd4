"""What is known of the front door."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge


def unauthorized(registry: CollectorRegistry) -> Callable[[], None]:
    """Counts those who may not come in."""
    return Counter(
        "api_exporter_web_unauthorized",
        "Requests without a right password or token, where one is asked for, and"
        " connections with a client certificate that is not taken.",
        registry=registry,
    ).inc


def reload_successful(registry: CollectorRegistry, fine: Callable[[], bool]) -> None:
    """A gauge where there is a file that says who may come in."""
    Gauge(
        "api_exporter_web_config_last_reload_successful",
        "Whether WEB_CONFIG_FILE and WEB_BEARER_TOKENS_FILE were good when they were"
        " last looked at. What was good before stays in force.",
        registry=registry,
    ).set_function(fine)
