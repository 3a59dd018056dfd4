"""Policies whose sides are empty, and the peers that posture checks shut out."""

import re
from collections.abc import Iterable, Mapping, Sequence

from api_exporter.exposition.tally import chunks, tally
from api_exporter.netbird.facts.members import Steps, distinct
from api_exporter.netbird.records import (
    Group,
    GroupId,
    Peer,
    Policy,
    PostureCheck,
    TypedId,
)


def sizes(groups: Iterable[Group]) -> dict[str, int]:
    """How many peers and network resources each group has, by its id."""
    return {group.id: group.peers_count + group.resources_count for group in groups}


def empty_sides(policy: Policy, sizes: Mapping[str, int]) -> int:
    """How many sides of its enabled rules reach nothing; none where it is not enabled.

    Args:
        sizes: of the groups, by their ids.
    """
    if not policy.enabled:
        return 0
    return sum(
        _empty(groups, resource, sizes)
        for rule in distinct(policy.rules)
        if rule.enabled
        for groups, resource in (
            (rule.sources, rule.source_resource),
            (rule.destinations, rule.destination_resource),
        )
    )


def _empty(
    groups: tuple[GroupId, ...] | None,
    resource: TypedId | None,
    sizes: Mapping[str, int],
) -> bool:
    if resource is not None and resource.id:
        return False
    return all(sizes.get(group.id, 0) <= 0 for group in groups or ())


def policies_by_check(policies: Iterable[Policy]) -> dict[str, list[Policy]]:
    """The enabled policies that use a posture check, by the check's id."""
    found: dict[str, list[Policy]] = {}
    for policy in policies:
        if policy.enabled:
            for check in dict.fromkeys(policy.source_posture_checks or ()):
                found.setdefault(check, []).append(policy)
    return found


Release = tuple[int, int, int]


def outdated(
    checks: Iterable[PostureCheck],
    policies: Iterable[Policy],
    groups: Iterable[Group],
    peers: tuple[Peer, ...],
) -> Steps[Mapping[str, int]]:
    """How many peers each check shuts out because of their versions, by its id.

    They are in source groups of enabled rules of the policies that use the check.
    """
    counts: dict[str, int] = {}
    demands = yield from _demands(checks, policies_by_check(policies))
    for demanding in demands.values():
        counts.update((id_, 0) for id_, _ in demanding)
    if not any(demands):
        return counts
    highest = max(minimum for each in demands.values() for _, minimum in each)
    old: dict[str, Release] = {}
    below: dict[str, Release] = {}
    for some in chunks(peers):
        versions = {peer.version for peer in some}
        old |= {v: own for v in versions if (own := release(v)) and own < highest}
        below.update({p.id: old[p.version] for p in some if p.version in old})
        yield
    known = {group.id: group.peers or () for group in groups}
    for sources, demanding in demands.items():
        found: set[str] = set()
        for members in map(known.__getitem__, sources & known.keys()):
            for part in chunks(members):
                found.update([member.id for member in part if member.id in below])
                yield
        running, steps = tally(map(below.__getitem__, found))
        yield from steps
        for id_, minimum in demanding:
            counts[id_] = sum(n for own, n in running.items() if own < minimum)
    return counts


def _demands(
    checks: Iterable[PostureCheck], by_check: Mapping[str, Sequence[Policy]]
) -> Steps[dict[frozenset[str], list[tuple[str, Release]]]]:
    """Checks that demand a version, by the groups whose members they concern."""
    sources: dict[tuple[int, ...], frozenset[str]] = {}
    demands: dict[frozenset[str], list[tuple[str, Release]]] = {}
    for check in checks:
        demanded = check.checks.nb_version_check
        minimum = release(demanded.min_version) if demanded is not None else None
        if minimum is not None:
            policies = by_check.get(check.id, ())
            key = tuple(map(id, policies))
            if key not in sources:  # many checks may be used by the same policies
                found = set[str]()
                for policy in policies:
                    found |= source_groups(policy)
                    yield
                sources[key] = frozenset(found)
            demands.setdefault(sources[key], []).append((check.id, minimum))
        yield
    return demands


def source_groups(policy: Policy) -> frozenset[str]:
    """The ids of the groups that its enabled rules let in."""
    return frozenset(
        group.id
        for rule in distinct(policy.rules)
        if rule.enabled
        for group in rule.sources or ()
    )


def release(version: str) -> Release | None:
    """A release's three numbers; None for development builds and whatever else."""
    match = re.fullmatch(r"v?(\d{1,99})\.(\d{1,99})\.(\d{1,99})", version, re.ASCII)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
