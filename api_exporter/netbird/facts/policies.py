"""Policies with empty sides, and the peers that posture checks block."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from api_exporter.netbird.facts.members import PeerSets, distinct
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import GroupId, Peer, Policy, TypedId


def group_sizes(inventory: Inventory) -> dict[str, int]:
    """Return the number of peers and network resources of each group, by its id."""
    return {g.id: g.peers_count + g.resources_count for g in inventory.groups or ()}


def empty_sides(policy: Policy, sizes: Mapping[str, int]) -> int:
    """Return the number of empty sides of a policy's enabled rules; 0 if disabled.

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


def policies_by_check(inventory: Inventory) -> dict[str, list[Policy]]:
    """Return the enabled policies that use a posture check, by the check's id."""
    found: dict[str, list[Policy]] = {}
    for policy in inventory.policies or ():
        if policy.enabled:
            for check in dict.fromkeys(policy.source_posture_checks or ()):
                found.setdefault(check, []).append(policy)
    return found


Release = tuple[int, int, int]


def outdated_peer_counts(inventory: Inventory) -> Mapping[str, int]:
    """Return the number of peers that each check blocks for their version, by its id.

    These peers are in source groups of the policies that use the check.
    """
    minimums = _minimum_versions(inventory)
    if not minimums:
        return {}
    ids = _by_version(inventory.peers or (), max(minimums.values()))
    # Peers stand in the order of their versions: older peers have lower places.
    versions = sorted(ids)
    places: dict[str, int] = {}
    first_places: list[int] = []
    for version in versions:
        first_places.append(len(places))
        places.update(zip(ids[version], count(len(places)), strict=False))
    first_places.append(len(places))
    uses = _uses(minimums, policies_by_check(inventory))
    used_policies = {id(p): p for using, _ in uses.values() for p in using}
    source_ids = {key: source_groups(policy) for key, policy in used_policies.items()}
    group_ids = frozenset().union(*source_ids.values())
    sets = PeerSets(places)
    for group in inventory.groups or ():
        if group.id in group_ids:
            sets.add(group.id, [member.id for member in group.peers or ()])
    counts: dict[str, int] = {}
    for using, ids_of_checks in uses.values():
        members = sets.union(set().union(*[source_ids[id(p)] for p in using]))
        for id_ in ids_of_checks:
            place = first_places[bisect_left(versions, minimums[id_])]
            counts[id_] = members.below(place)
    return counts


def _minimum_versions(inventory: Inventory) -> Mapping[str, Release]:
    found: dict[str, Release] = {}
    for check in inventory.posture_checks or ():
        version = check.checks.nb_version_check
        if version is not None and (minimum := parse_release(version.min_version)):
            found[check.id] = minimum
    return found


Uses = Mapping[tuple[int, ...], tuple[Sequence[Policy], list[str]]]
"""The policies that use a check, and all checks that the same policies use."""


def _uses(checks: Iterable[str], by_check: Mapping[str, Sequence[Policy]]) -> Uses:
    found: dict[tuple[int, ...], tuple[Sequence[Policy], list[str]]] = {}
    for check in checks:
        policies = by_check.get(check, ())
        found.setdefault(tuple(map(id, policies)), (policies, []))[1].append(check)
    return found


def count_groups_through_policies(inventory: Inventory) -> int:
    """Return the number of source groups that posture checks have through policies."""
    group_counts = {id(p): len(source_groups(p)) for p in inventory.policies or ()}
    uses = _uses(_minimum_versions(inventory), policies_by_check(inventory))
    return sum(sum(map(group_counts.__getitem__, key)) for key in uses)


def _by_version(peers: tuple[Peer, ...], limit: Release) -> Mapping[Release, list[str]]:
    releases = {
        version: parse_release(version) for version in {p.version for p in peers}
    }
    found: dict[Release, list[str]] = {}
    for peer in peers:
        if (own := releases[peer.version]) is not None and own < limit:
            found.setdefault(own, []).append(peer.id)
    return found


def source_groups(policy: Policy) -> frozenset[str]:
    """Return the ids of the source groups of a policy's enabled rules."""
    return frozenset(
        group.id
        for rule in distinct(policy.rules)
        if rule.enabled
        for group in rule.sources or ()
    )


def parse_release(version: str) -> Release | None:
    """Return the three numbers of a release; None for development builds and others."""
    match = re.fullmatch(r"v?(\d{1,99})\.(\d{1,99})\.(\d{1,99})", version, re.ASCII)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
