"""Findings about the account: approvals, versions, addresses, policies."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finder, Finding, Snapshot, safe_line
from api_exporter.attention.thresholds import HOUR
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.facts.account import address_count, choices
from api_exporter.netbird.facts.policies import (
    empty_sides,
    group_sizes,
    outdated_peer_counts,
    policies_by_check,
)
from api_exporter.plurals import with_noun


def peer_approvals(snapshot: Snapshot) -> Iterator[Finding]:
    """Report peers that have waited for approval for hours since their registration."""
    hours = snapshot.thresholds.hours["approval"]
    waiting = [
        (at, peer)
        for peer in snapshot.inventory.peers or ()
        if peer.approval_required
        and snapshot.now - (at := timestamp(peer.created_at) or 0.0) >= hours * HOUR
    ]
    if waiting:
        names = snapshot.names([peer for _, peer in waiting])
        verb = "waits" if len(waiting) == 1 else "wait"
        yield snapshot.finding(
            "NetBirdPeerAwaitsApproval",
            with_noun(len(waiting), "peer"),
            f"{verb} for approval{names}.",
            since=min(at for at, _ in waiting) or None,
        )


def user_approvals(snapshot: Snapshot) -> Iterator[Finding]:
    """Report users that wait for approval, at once: the start is unknown."""
    waiting = sum(user.pending_approval for user in snapshot.inventory.users or ())
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        yield snapshot.finding(
            "NetBirdUserAwaitsApproval",
            with_noun(waiting, "user"),
            f"{verb} for approval.",
        )


def unused_checks(snapshot: Snapshot) -> Iterator[Finding]:
    """Report posture checks that no enabled policy uses."""
    used = policies_by_check(snapshot.inventory)
    for check in snapshot.inventory.posture_checks or ():
        if check.id not in used:
            yield snapshot.finding(
                "NetBirdPostureCheckUnused",
                f"Posture check {safe_line(check.name or check.id)}",
                "has no effect: no enabled policy uses this check.",
            )


def old_versions(snapshot: Snapshot) -> Iterator[Finding]:
    """Report peers that a posture check excludes because of their version."""
    old = outdated_peer_counts(snapshot.inventory)
    for check in snapshot.inventory.posture_checks or ():
        demanded = check.checks.nb_version_check
        number = old.get(check.id, 0)
        if demanded is not None and number:
            yield snapshot.finding(
                "NetBirdPeersOutdated",
                f"Posture check {safe_line(check.name or check.id)}",
                f"excludes {with_noun(number, 'peer')} with a version below the"
                f" minimum {safe_line(demanded.min_version)}.",
            )


def address_pool(snapshot: Snapshot) -> Iterator[Finding]:
    """Report an address range that is nearly full."""
    share = snapshot.thresholds.shares["addresses_used"]
    for account in snapshot.inventory.accounts or ():
        size = address_count(account.settings.network_range)
        used = len(snapshot.inventory.peers or ())
        if size and used / size > share:
            yield snapshot.finding(
                "NetBirdAddressPoolNearlyFull",
                "The address range",
                f"is nearly full: peers use {used:,} of {size:,} addresses.",
            )


def settings(snapshot: Snapshot) -> Iterator[Finding]:
    """Report account settings that differ from those in the thresholds."""
    for account in snapshot.inventory.accounts or ():
        for name, value in choices(account):
            if snapshot.thresholds.settings.get(name, value) is not value:
                yield snapshot.finding(
                    "NetBirdSettingDiffers",
                    f"Setting {name}",
                    f"is {'on' if value else 'off'}, but must be"
                    f" {'off' if value else 'on'}.",
                )


def invites(snapshot: Snapshot) -> Iterator[Finding]:
    """Report invites that have expired."""
    expired = [i for i in snapshot.inventory.user_invites or () if i.expired]
    if expired:
        times = [timestamp(invite.expires_at) for invite in expired]
        verb = "has" if len(expired) == 1 else "have"
        yield snapshot.finding(
            "NetBirdInviteExpired",
            with_noun(len(expired), "invite"),
            f"{verb} expired and cannot be accepted.",
            since=min((at for at in times if at is not None), default=None),
        )


def policies(snapshot: Snapshot) -> Iterator[Finding]:
    """Report enabled policies with a rule side that matches nothing.

    Without any peer, there are no findings.
    """
    if not snapshot.inventory.peers:
        return
    known = group_sizes(snapshot.inventory)
    for policy in snapshot.inventory.policies or ():
        if sides := empty_sides(policy, known):
            yield snapshot.finding(
                "NetBirdPolicyEmpty",
                f"Policy {safe_line(policy.name or policy.id)}",
                f"has {with_noun(sides, 'rule side')} without members: these sources or"
                " destinations match no peer and no resource.",
            )


ROWS = (
    Finder(address_pool, ("accounts", "peers")),
    Finder(policies, ("policies", "groups", "peers")),
    Finder(peer_approvals, ("peers",)),
    Finder(user_approvals, ("users",)),
    Finder(unused_checks, ("posture_checks", "policies")),
    Finder(settings, ("accounts",)),
    Finder(invites, ("user_invites",)),
    Finder(old_versions, ("posture_checks", "policies", "groups", "peers")),
)
