"""`--rules`: the rules for Prometheus that go by the operator's own thresholds."""

from msgspec.structs import replace

from api_exporter.attention.rules import joined
from api_exporter.attention.thresholds import shipped
from api_exporter.daemon.life import refusal
from api_exporter.settings import configuration
from api_exporter.settings.options import Options
from api_exporter.settings.table import (
    IMPORTANT_GROUPS,
    RUNBOOKS_URL,
    THRESHOLDS_FILE,
)


def made(options: Options) -> str:
    """Both files in one; raises SystemExit where a setting is wrong."""
    try:
        settings = configuration.chosen(
            options, THRESHOLDS_FILE, RUNBOOKS_URL, IMPORTANT_GROUPS
        )
    except configuration.Refused as error:
        raise refusal(error.problems, lasting=error.lasting) from None
    thresholds = settings[THRESHOLDS_FILE.name] or shipped()
    if important := settings[IMPORTANT_GROUPS.name]:
        groups = replace(thresholds.groups, important=list(important))
        thresholds = replace(thresholds, groups=groups)
    return joined(thresholds, settings[RUNBOOKS_URL.name])
