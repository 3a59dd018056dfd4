"""The table of finders."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from api_exporter.attention import (
    account,
    agent_network,
    expirations,
    exporter,
    groups,
    proxies,
    routing,
)
from api_exporter.attention.finding import Finding, Snapshot
from api_exporter.netbird.references import has_references


class Finder(Struct, frozen=True):
    """A function that yields findings, and the resources that it reads.

    Attributes:
        reads: the resources. While one is unknown, there are no findings.
        is_single: True if each finding is about one object. These are hidden while the
            peers cannot be read, and if they began with a drop of the fleet.
    """

    find: Callable[[Snapshot], Iterator[Finding]]
    reads: tuple[str, ...] = ()
    is_single: bool = False


FINDERS = (
    Finder(exporter.unreadable_peers),
    Finder(exporter.fleet_drop, ("peers",)),
    Finder(exporter.limited_user),
    Finder(exporter.missing_detail_groups, ("groups",)),
    Finder(exporter.unwatched_token),
    Finder(exporter.rejected_records),
    Finder(groups.offline_peers, ("groups", "peers"), is_single=True),
    Finder(
        routing.networks,
        ("networks", "network_routers", "network_resources", "groups", "peers"),
        is_single=True,
    ),
    Finder(routing.routes, ("routes", "groups", "peers"), is_single=True),
    Finder(groups.expired_logins, ("groups", "peers")),
    Finder(expirations.certificates),
    Finder(expirations.access_tokens, ("users", "access_tokens")),
    Finder(expirations.logins, ("peers", "accounts")),
    Finder(expirations.setup_keys, ("setup_keys",)),
    Finder(expirations.proxy_tokens, ("proxy_tokens",)),
    Finder(proxies.clusters, ("proxy_clusters",)),
    Finder(proxies.services, ("proxy_services",)),
    Finder(account.address_pool, ("accounts", "peers")),
    Finder(account.policies, ("policies", "groups", "peers")),
    Finder(account.peer_approvals, ("peers",)),
    Finder(account.user_approvals, ("users",)),
    Finder(account.unused_checks, ("posture_checks", "policies")),
    Finder(account.settings, ("accounts",)),
    Finder(account.invites, ("user_invites",)),
    Finder(
        agent_network.budgets,
        (
            "agent_policies",
            "agent_budget_rules",
            "agent_consumption",
            "groups",
            "users",
            "peers",
        ),
    ),
    Finder(agent_network.cost, ("agent_usage",)),
    Finder(agent_network.providers, ("agent_providers",)),
    Finder(agent_network.policies, ("agent_policies", "agent_providers")),
    Finder(
        agent_network.references,
        (
            "agent_policies",
            "agent_budget_rules",
            "agent_providers",
            "agent_guardrails",
            "groups",
            "users",
            "peers",
        ),
    ),
    Finder(agent_network.prompts, ("agent_settings",)),
    Finder(account.old_versions, ("posture_checks", "policies", "groups", "peers")),
)


def find(finder: Finder, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the findings of one finder."""
    if _unknown(snapshot, finder) or (finder.is_single and snapshot.peers_unreadable):
        return
    if has_references(finder.reads):
        snapshot = snapshot.joined
    for finding in finder.find(snapshot):
        if not (finder.is_single and snapshot.is_part_of_drop(finding)):
            yield finding


def unknown_resources(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the requested resources without data: findings may be missing."""
    missing = {name for finder in FINDERS for name in _unknown(snapshot, finder)}
    return tuple(
        name
        for name, state in snapshot.freshness.items()
        if name in missing and state.supported is not False
    )


def _unknown(snapshot: Snapshot, finder: Finder) -> list[str]:
    return [name for name in finder.reads if getattr(snapshot.inventory, name) is None]
