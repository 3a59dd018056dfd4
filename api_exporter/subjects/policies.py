"""Policies and posture checks, and the peers that posture checks block."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated

from msgspec import Struct, field

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.collectors.rows import ObjectKind, id_and_name
from api_exporter.formatting import safe_line, with_noun
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory, joined_once
from api_exporter.netbird.members import PeerSets, count_below, distinct
from api_exporter.netbird.records import (
    LIMITED_GROUPS,
    GroupId,
    Peer,
    ShownText,
    TypedId,
)
from api_exporter.netbird.resources import Resource
from api_exporter.subjects import Subject


class Rule(Struct, frozen=True, gc=False, kw_only=True):
    """A rule of a policy; each side is groups or a single resource."""

    id: str = ""
    action: str = ""
    protocol: str = ""
    enabled: bool = False
    sources: Annotated[tuple[GroupId, ...], LIMITED_GROUPS] | None = None
    destinations: Annotated[tuple[GroupId, ...], LIMITED_GROUPS] | None = None
    source_resource: TypedId | None = field(default=None, name="sourceResource")
    destination_resource: TypedId | None = field(
        default=None, name="destinationResource"
    )


class Policy(Struct, frozen=True, gc=False, kw_only=True):
    """A policy that gives access (`/api/policies`)."""

    id: str
    name: ShownText = ""
    enabled: bool = False
    rules: tuple[Rule, ...] | None = None
    source_posture_checks: tuple[str, ...] | None = None


class VersionCheck(Struct, frozen=True, gc=False, kw_only=True):
    """The oldest client version that passes the check."""

    min_version: str = ""


class Checks(Struct, frozen=True, gc=False, kw_only=True):
    """The checks of a posture check. Only the version check is read."""

    nb_version_check: VersionCheck | None = None


class PostureCheck(Struct, frozen=True, gc=False, kw_only=True):
    """A condition on peers (`/api/posture-checks`)."""

    id: str
    name: ShownText = ""
    checks: Checks = Checks()


def _named_ids(policy: Policy) -> int:
    """Joins look up the source groups of a policy for each of its posture checks."""
    sides = (s for r in policy.rules or () for s in (r.sources, r.destinations) if s)
    checks = len(policy.source_posture_checks or ())
    return sum(map(len, sides)) + checks * max(1, len(source_groups(policy)))


POLICIES = Resource(
    "policies",
    "api/policies",
    ListDecoder(Policy),
    permission="policies",
    named_ids=_named_ids,
)
POSTURE_CHECKS = Resource(
    "posture_checks",
    "api/posture-checks",
    ListDecoder(PostureCheck),
    permission="policies",
)


def group_sizes(inventory: Inventory) -> dict[str, int]:
    """Return the number of peers and network resources of each group, by its id."""
    return {g.id: g.peers_count + g.resources_count for g in inventory.groups or ()}


def empty_sides(policy: Policy, sizes: Mapping[str, int]) -> int:
    """Return the number of empty sides of a policy's enabled rules; 0 if disabled."""
    rules = [r for r in distinct(policy.rules) if policy.enabled and r.enabled]
    sides = [(r.sources, r.source_resource) for r in rules]
    sides += [(r.destinations, r.destination_resource) for r in rules]
    return sum(
        not (resource and resource.id)
        and all(sizes.get(group.id, 0) <= 0 for group in groups or ())
        for groups, resource in sides
    )


def policies_by_check(inventory: Inventory) -> dict[str, list[Policy]]:
    """Return the enabled policies that use a posture check, by the check's id."""
    found: dict[str, list[Policy]] = {}
    for policy in POLICIES.of(inventory) or ():
        if policy.enabled:
            for check in dict.fromkeys(policy.source_posture_checks or ()):
                found.setdefault(check, []).append(policy)
    return found


Release = tuple[int, int, int]


@joined_once
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
    by_check = policies_by_check(inventory)
    used_policies = {p.id: p for id_ in minimums for p in by_check.get(id_, ())}
    source_ids = {id_: source_groups(policy) for id_, policy in used_policies.items()}
    group_ids = frozenset().union(*source_ids.values())
    sets = PeerSets(places)
    for group in inventory.groups or ():
        if group.id in group_ids:
            sets.add(group.id, [member.id for member in group.peers or ()])
    counts: dict[str, int] = {}
    for check, minimum in minimums.items():
        sources = [source_ids[policy.id] for policy in by_check.get(check, ())]
        place = first_places[bisect_left(versions, minimum)]
        counts[check] = count_below(sets.union(set().union(*sources)), place)
    return counts


def _minimum_versions(inventory: Inventory) -> Mapping[str, Release]:
    found: dict[str, Release] = {}
    for check in POSTURE_CHECKS.of(inventory) or ():
        version = check.checks.nb_version_check
        if version is not None and (minimum := parse_release(version.min_version)):
            found[check.id] = minimum
    return found


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


ACCESS_POLICY = ObjectKind[Policy](POLICIES, id_and_name("policy"))

CHECK = ObjectKind[PostureCheck](POSTURE_CHECKS, id_and_name("posture_check"))

FAMILIES = (
    ACCESS_POLICY.count_enabled("netbird_api_policies", "policies"),
    ACCESS_POLICY.count(
        "netbird_api_policy_rules",
        "Number of policy rules by action, protocol and whether they are enabled",
        {"action": "action", "protocol": "protocol", "enabled": "enabled"},
        elements=lambda policy: distinct(policy.rules),
        source="policies[].rules[].{action,protocol,enabled}",
    ),
    ACCESS_POLICY.info(
        "netbird_api_policy_info",
        "Properties of a policy, to join on policy_id (always 1)",
    ),
    ACCESS_POLICY.enabled("netbird_api_policy_enabled", "policy"),
    ACCESS_POLICY.each(
        "netbird_api_policy_enabled_rules",
        "Number of the policy's enabled rules, even while the policy is disabled",
        "policies[].rules[].enabled",
        lambda policy: sum(rule.enabled for rule in distinct(policy.rules)),
        alert="0 for an enabled policy: the policy has no effect",
    ),
    ACCESS_POLICY.joined(
        "netbird_api_policy_empty_sides",
        "Number of empty sides (sources or destinations) of the enabled policy's"
        " enabled rules",
        "policies[].rules[].{sources,destinations,sourceResource,"
        "destinationResource} among groups[].{peers_count,resources_count}",
        group_sizes,
        lambda known, policy: empty_sides(policy, known),
        needs=("groups",),
        alert="above 0: the policy has no effect on this side",
    ),
    CHECK.total("netbird_api_posture_checks", "Number of posture checks"),
    CHECK.info(
        "netbird_api_posture_check_info",
        "Properties of a posture check, to join on posture_check_id (always 1)",
    ),
    CHECK.joined(
        "netbird_api_posture_check_policies",
        "Number of enabled policies that use the posture check",
        "posture-checks[].id among policies[].source_posture_checks[],"
        " where policies[].enabled",
        policies_by_check,
        lambda used, check: len(used.get(check.id, ())),
        needs=("policies",),
        alert="0: no policy uses the check",
    ),
    CHECK.joined(
        "netbird_api_posture_check_peers_below_min_version",
        "Number of peers that the posture check blocks because their client version is"
        " below its minimum",
        "posture-checks[].checks.nb_version_check.min_version, peers[].version,"
        " groups[].peers[].id, policies[].{enabled,source_posture_checks},"
        " policies[].rules[].{enabled,sources}",
        outdated_peer_counts,
        lambda counts, check: counts.get(check.id),
        needs=("policies", "groups", "peers"),
        alert="above 0: the policies with this check exclude these peers",
    ),
)


POLICY_EMPTY = FindingKind(
    "NetBirdPolicyEmpty",
    "Policy",
    "policy",
    lasts="1h",
    summary="Policy {{ $labels.policy }} has rule sides without members",
    description="Policy {{ $labels.policy }} has sources or destinations that match no"
    " peer and no resource.",
)
CHECK_UNUSED = FindingKind(
    "NetBirdPostureCheckUnused",
    "Posture check",
    "posture_check",
    lasts="6h",
    summary="Posture check {{ $labels.posture_check }} has no effect",
    description="No enabled policy uses posture check {{ $labels.posture_check }}.",
)
PEERS_OUTDATED = FindingKind(
    "NetBirdPeersOutdated",
    "Posture check",
    "posture_check",
    lasts="6h",
    summary="Posture check {{ $labels.posture_check }} excludes peers with a version"
    " below its minimum",
    description="Peers have a version below the minimum of posture check {{"
    " $labels.posture_check }}.",
)


def empty_policies(snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.inventory.peers:  # a new network
        return
    known = group_sizes(snapshot.inventory)
    for policy in POLICIES.of(snapshot.inventory) or ():
        if sides := empty_sides(policy, known):
            yield snapshot.finding(
                POLICY_EMPTY,
                f"has {with_noun(sides, 'rule side')} without members: these sources or"
                " destinations match no peer and no resource.",
                policy,
            )


def unused_checks(snapshot: Snapshot) -> Iterator[Finding]:
    used = policies_by_check(snapshot.inventory)
    for check in POSTURE_CHECKS.of(snapshot.inventory) or ():
        if check.id not in used:
            yield snapshot.finding(
                CHECK_UNUSED, "has no effect: no enabled policy uses this check.", check
            )


def old_versions(snapshot: Snapshot) -> Iterator[Finding]:
    old = outdated_peer_counts(snapshot.inventory)
    for check in POSTURE_CHECKS.of(snapshot.inventory) or ():
        demanded = check.checks.nb_version_check
        number = old.get(check.id, 0)
        if demanded is not None and number:
            yield snapshot.finding(
                PEERS_OUTDATED,
                f"excludes {with_noun(number, 'peer')} with a version below the"
                f" minimum {safe_line(demanded.min_version)}.",
                check,
            )


FINDERS = (
    Finder(empty_policies, (POLICY_EMPTY,), ("policies", "groups", "peers")),
    Finder(unused_checks, (CHECK_UNUSED,), ("posture_checks", "policies")),
    Finder(
        old_versions,
        (PEERS_OUTDATED,),
        ("posture_checks", "policies", "groups", "peers"),
    ),
)

SUBJECT = Subject(__name__, (POLICIES, POSTURE_CHECKS), FAMILIES, FINDERS)
