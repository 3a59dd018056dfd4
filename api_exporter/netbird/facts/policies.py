"""Policies whose sides are empty, and the peers that posture checks shut out."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from itertools import count

from api_exporter.exposition.tally import chunks
from api_exporter.netbird.facts.members import Steps, bits, distinct
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
    by_check = policies_by_check(policies)
    demands: dict[str, Release] = {}
    for check in checks:
        demanded = check.checks.nb_version_check
        if demanded is not None and (minimum := release(demanded.min_version)):
            demands[check.id] = minimum
    if not demands:
        return {}
    ids = yield from _by_version(peers, max(demands.values()))
    # Peers in the order of their versions, so that older ones are lower bits.
    versions = sorted(ids)
    places: dict[str, int] = {}
    first: list[int] = []
    for version in versions:
        first.append(len(places))
        for part in chunks(ids[version]):
            places.update(zip(part, count(len(places)), strict=False))
            yield
    first.append(len(places))
    concerned = {id(p): p for id_ in demands for p in by_check.get(id_, ())}
    sources = yield from _sources(concerned.values(), groups, places)
    counts: dict[str, int] = {}
    for id_, minimum in demands.items():
        every = 0
        for policy in by_check.get(id_, ()):
            every |= sources[id(policy)]
        older = (1 << first[bisect_left(versions, minimum)]) - 1
        counts[id_] = (every & older).bit_count()
        yield
    return counts


def _by_version(
    peers: tuple[Peer, ...], limit: Release
) -> Steps[Mapping[Release, list[str]]]:
    """The ids of the peers whose version is below a limit."""
    known: dict[str, Release | None] = {}
    found: dict[Release, list[str]] = {}
    for some in chunks(peers):
        known |= {v: release(v) for v in {peer.version for peer in some} - known.keys()}
        for peer in some:
            if (own := known[peer.version]) is not None and own < limit:
                found.setdefault(own, []).append(peer.id)
        yield
    return found


def _sources(
    policies: Collection[Policy], groups: Iterable[Group], places: Mapping[str, int]
) -> Steps[dict[int, int]]:
    """The source peers of each policy as bits, by the policy's identity."""
    names = {id(policy): source_groups(policy) for policy in policies}
    wanted = frozenset().union(*names.values())
    members: dict[str, int] = {}
    for group in groups:
        if group.id in wanted:
            ids = [member.id for member in group.peers or ()]
            members[group.id] = yield from bits(ids, places)
    found: dict[int, int] = {}
    for policy, some in names.items():
        found[policy] = 0
        for name in some & members.keys():
            found[policy] |= members[name]
        yield
    return found


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
