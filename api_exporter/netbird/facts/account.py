"""Conclusions from the account's settings: expiry of logins, and room for peers."""

from collections.abc import Iterator

from msgspec.structs import fields

from api_exporter.exposition.text import timestamp
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Choice,
    ExtraSettings,
    NetBirdAccount,
    NetBirdSettings,
    Peer,
)


def login_lifetime_seconds(inventory: Inventory) -> int | None:
    """Return the seconds after which a login expires; None if logins do not expire."""
    for account in inventory.accounts or ():  # a token sees one
        settings = account.settings
        enabled = settings.peer_login_expiration_enabled
        return settings.peer_login_expiration if enabled else None
    return None


def login_expires_at(lifetime: int | None, peer: Peer) -> float | None:
    """Return when the login of a user's peer expires; None if it does not."""
    if lifetime is None or not (peer.login_expiration_enabled and peer.user_id):
        return None
    login = timestamp(peer.last_login)
    if login is None or login + lifetime < 0:
        return None
    return login + lifetime


def choices(account: NetBirdAccount) -> Iterator[tuple[str, bool]]:
    """Yield the yes-or-no settings of an account that the response has."""
    for prefix, part in (("", account.settings), ("extra.", account.settings.extra)):
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, bool):
                yield prefix + field.name, value


CHOICES = tuple(
    prefix + field.name
    for prefix, part in (("", NetBirdSettings), ("extra.", ExtraSettings))
    for field in fields(part)
    if field.type == Choice
)
"""The names of all yes-or-no settings of an account."""
