"""What waits for whoever looks after the account: approvals, versions, addresses,
policies.
"""

from collections.abc import Iterator

from api_exporter.attention.finding import Finding, Seen, counted, plain
from api_exporter.attention.thresholds import HOUR
from api_exporter.exposition.tally import chunks
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.facts.account import addresses
from api_exporter.netbird.facts.policies import (
    empty_sides,
    outdated,
    policies_by_check,
    sizes,
)
from api_exporter.netbird.records import Peer


def peer_approvals(seen: Seen) -> Iterator[Finding | None]:
    """Peers that have waited for hours; they have since they were registered."""
    hours = seen.thresholds.hours["approval"]
    peers, long = seen.inventory.peers or (), list[tuple[float, Peer]]()
    for some in chunks(peers):
        long += [
            (at, peer)
            for peer in some
            if peer.approval_required
            and seen.now - (at := timestamp(peer.created_at) or 0.0) >= hours * HOUR
        ]
        yield None
    if long:
        names = yield from seen.names([peer for _, peer in long])
        verb = "waits" if len(long) == 1 else "wait"
        yield seen.finding(
            "NetBirdPeerAwaitsApproval",
            "Peers",
            f"{counted(len(long), 'peer')} {verb} for approval{names}.",
            since=min(at for at, _ in long) or None,
        )


def user_approvals(seen: Seen) -> Iterator[Finding]:
    """Nobody knows since when a user waits: told at once."""
    waiting = sum(user.pending_approval for user in seen.inventory.users or ())
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        yield seen.finding(
            "NetBirdUserAwaitsApproval",
            "Users",
            f"{counted(waiting, 'user')} {verb} for approval.",
        )


def unused_checks(seen: Seen) -> Iterator[Finding]:
    """Posture checks that do nothing at all."""
    used = policies_by_check(seen.inventory.policies or ())
    for check in seen.inventory.posture_checks or ():
        if check.id not in used:
            yield seen.finding(
                "NetBirdPostureCheckUnused",
                f"Posture check {plain(check.name or check.id)}",
                "No enabled policy uses it.",
            )


def old_versions(seen: Seen) -> Iterator[Finding | None]:
    """Peers that a posture check shuts out."""
    inventory = seen.inventory
    checks = inventory.posture_checks or ()
    old, steps = outdated(
        checks,
        inventory.policies or (),
        inventory.groups or (),
        inventory.peers or (),
    )
    yield from steps
    for check in checks:
        demanded = check.checks.nb_version_check
        number = old.get(check.id, 0)
        if demanded is not None and number:
            verb = "is" if number == 1 else "are"
            yield seen.finding(
                "NetBirdPeersOutdated",
                f"Posture check {plain(check.name or check.id)}",
                f"{counted(number, 'peer')} {verb} older than"
                f" {plain(demanded.min_version)}, which it demands.",
            )


def address_pool(seen: Seen) -> Iterator[Finding]:
    """A range of addresses that is nearly full."""
    share = seen.thresholds.shares["addresses_used"]
    for account in seen.inventory.accounts or ():
        room = addresses(account.settings.network_range)
        taken = len(seen.peers)
        if room and taken / room > share:
            yield seen.finding(
                "NetBirdAddressPoolNearlyFull",
                "Address range",
                f"{taken:,} of the {room:,} addresses for peers are taken.",
            )


def policies(seen: Seen) -> Iterator[Finding]:
    """Enabled ones that do not do what they seem to do; without a single peer there is
    nothing to say.
    """
    if not seen.inventory.peers:
        return
    known = sizes(seen.inventory.groups or ())
    for policy in seen.inventory.policies or ():
        if sides := empty_sides(policy, known):
            verb = "is" if sides == 1 else "are"
            yield seen.finding(
                "NetBirdPolicyEmpty",
                f"Policy {plain(policy.name or policy.id)}",
                f"{counted(sides, 'side')} of its rules {verb} empty: sources or"
                " destinations that hold nothing.",
            )
