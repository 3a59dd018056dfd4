"""What netbird-api-exporter calls our settings: a help for those who come from it."""

from collections.abc import Mapping

from api_exporter.settings.table import (
    UPSTREAM_API_TOKEN,
    UPSTREAM_API_TOKEN_FILE,
    UPSTREAM_API_URL,
)

SYNONYMS = {
    "NETBIRD_API_URL": (UPSTREAM_API_URL.name,),
    "NETBIRD_API_TOKEN": (UPSTREAM_API_TOKEN.name, UPSTREAM_API_TOKEN_FILE.name),
}
"""Each, and those of ours that mean the same; its other names are ours as well."""


def misnamed(environ: Mapping[str, str]) -> list[str]:
    """A line for each that is set while none of ours is. No value is repeated."""
    return [
        f"{theirs} is set, which is netbird-api-exporter's name: here it is"
        f" {' or '.join(ours)}"
        for theirs, ours in SYNONYMS.items()
        if environ.get(theirs, "").strip()
        and not any(environ.get(name, "").strip() for name in ours)
    ]
