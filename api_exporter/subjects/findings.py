"""The findings of each finder, and resources without which findings may be missing."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finder, Finding, Snapshot
from api_exporter.subjects.table import FINDERS, RESOURCE_BY_NAME


def can_find(finder: Finder, snapshot: Snapshot) -> bool:
    is_blind = finder.hidden_in_outage and snapshot.peers_unreadable
    return not is_blind and not _unknown(snapshot, finder)


def find(finder: Finder, snapshot: Snapshot) -> Iterator[Finding]:
    if not can_find(finder, snapshot):
        return
    keys = set()
    for finding in finder.find(snapshot):
        is_hidden = finder.hidden_in_outage and snapshot.is_part_of_drop(finding)
        if not is_hidden and finding.key not in keys:
            keys.add(finding.key)
            yield finding


def unknown_resources(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the resources without data: findings over them may be missing."""
    missing = {name for finder in FINDERS for name in _unknown(snapshot, finder)}
    return tuple(
        name
        for name, state in snapshot.states.items()
        if name in missing and (state.supported is not False or state.restricted)
    )


def has_untried(snapshot: Snapshot) -> bool:
    """Return whether a resource that finders read is still to be requested.

    One without a path is not: the token's user may stay unknown.
    """
    read = {name for finder in FINDERS for name in finder.reads}
    return any(
        state.up is None and state.supported is None and _has_path(snapshot, name)
        for name, state in snapshot.states.items()
        if name in read
    )


def _has_path(snapshot: Snapshot, name: str) -> bool:
    resource = RESOURCE_BY_NAME[name]
    return resource.request_path(snapshot.inventory, snapshot.now) is not None


def _unknown(snapshot: Snapshot, finder: Finder) -> list[str]:
    return [name for name in finder.reads if name not in snapshot.inventory.records]
