"""`--rules`: the rules for Prometheus with the operator's own thresholds."""

from msgspec.structs import replace

from api_exporter.attention.rules import all_rules
from api_exporter.attention.thresholds import default_thresholds
from api_exporter.daemon.life import start_error
from api_exporter.settings import loader
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.options import Options


def rules_text(options: Options) -> str:
    """Return both rule files as one; raise SystemExit if a setting is not valid."""
    try:
        own, runbooks, important = loader.load_only(
            options, "THRESHOLDS_FILE", "RUNBOOKS_URL", "IMPORTANT_GROUPS"
        )
    except ConfigurationError as error:
        raise start_error(error.problems, lasting=not error.retryable) from None
    thresholds = own or default_thresholds()
    if important:
        groups = replace(thresholds.groups, important=list(important))
        thresholds = replace(thresholds, groups=groups)
    return all_rules(thresholds, runbooks)
