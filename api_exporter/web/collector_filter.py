"""The filter of a scrape: `?collect[]=peers` or `?exclude[]=users`."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

EXPORTER = "exporter"
"""The name of the exporter's own metrics, which are included unless excluded."""


class CollectorFilter(Struct, frozen=True):
    """The selected part of the metrics page.

    Attributes:
        collectors: names; None for all.
        has_own: if the exporter's own metrics are included.
    """

    collectors: frozenset[str] | None = None
    has_own: bool = True


def collector_filter(
    query: Mapping[bytes, Sequence[bytes]], names: Sequence[str]
) -> CollectorFilter:
    """Parse the filter; raise ValueError with a line for the client."""
    included = _parse(query, "collect[]", names)
    excluded = _parse(query, "exclude[]", (*names, EXPORTER))
    if included and excluded - {EXPORTER}:
        raise ValueError(
            "collect[] and exclude[] exclude each other, except exclude[]=exporter"
        )
    has_own = EXPORTER not in excluded
    if included:
        return CollectorFilter(included, has_own)
    remaining = frozenset(names) - excluded
    return CollectorFilter(None if len(remaining) == len(names) else remaining, has_own)


def _parse(
    query: Mapping[bytes, Sequence[bytes]], parameter: str, allowed: Sequence[str]
) -> frozenset[str]:
    values = [value.decode("latin-1") for value in query.get(parameter.encode(), ())]
    for value in values:
        if value not in allowed:
            shown = ascii(value[:30])
            if not allowed:
                raise ValueError(
                    f"{parameter}: {shown}: name an account (account=NAME)"
                )
            raise ValueError(f"{parameter}: {shown} is not one of {', '.join(allowed)}")
    return frozenset(values)
