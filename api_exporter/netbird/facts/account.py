"""What the account's settings mean: when logins end, and how many peers fit."""

from ipaddress import IPv4Network

from api_exporter.exposition.text import timestamp
from api_exporter.netbird.records import Account, Peer


def login_lifetime(accounts: tuple[Account, ...]) -> int | None:
    """Seconds that a login lasts; None where logins do not end."""
    lifetimes = (
        account.settings.peer_login_expiration
        for account in accounts
        if account.settings.peer_login_expiration_enabled
    )
    return next(lifetimes, None)  # a token sees one account


def login_end(lifetime: int | None, peer: Peer) -> float | None:
    """Only where the peer wants it, for a user's peer that logged in."""
    if lifetime is None or not (peer.login_expiration_enabled and peer.user_id):
        return None
    login = timestamp(peer.last_login)
    if login is None or login + lifetime < 0:
        return None
    return login + lifetime


def addresses(network: str) -> int | None:
    """How many peers fit into an IPv4 range; None for anything else."""
    try:
        size = IPv4Network(network, strict=False).num_addresses
    except ValueError:
        return None
    return max(0, size - 2)
