"""`--rules`: the rules for Prometheus with the operator's own thresholds."""

from msgspec.structs import replace

from api_exporter.attention.rules import joined
from api_exporter.attention.thresholds import shipped
from api_exporter.daemon.life import refusal
from api_exporter.settings import loader
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.options import Options


def made(options: Options) -> str:
    """Return both rule files as one; raise SystemExit if a setting is not valid."""
    try:
        own, runbooks, important = loader.load_some(
            options, "THRESHOLDS_FILE", "RUNBOOKS_URL", "IMPORTANT_GROUPS"
        )
    except ConfigurationError as error:
        raise refusal(error.problems, lasting=not error.retryable) from None
    thresholds = own or shipped()
    if important:
        groups = replace(thresholds.groups, important=list(important))
        thresholds = replace(thresholds, groups=groups)
    return joined(thresholds, runbooks)
