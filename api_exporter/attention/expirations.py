"""Findings about logins, keys, tokens and certificates that expire."""

from collections.abc import Iterator
from math import ceil

from api_exporter.attention.finding import Finder, Finding, Snapshot, safe_line
from api_exporter.attention.lifetime import SOON, VERY_SOON, Lifetime
from api_exporter.attention.thresholds import DAY, HOUR
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.facts.account import login_expires_at, login_lifetime_seconds
from api_exporter.plurals import with_noun


def logins(snapshot: Snapshot) -> Iterator[Finding]:
    """Report connected peers whose login expires soon.

    There is no finding if logins last for less than `login_routine` days.
    """
    days, share = snapshot.thresholds.days, snapshot.thresholds.shares["login_soon"]
    lifetime = login_lifetime_seconds(snapshot.inventory)
    if lifetime is None or lifetime < days["login_routine"] * DAY:
        return
    limit = min(days["login_soon"] * DAY, share * lifetime)
    soon = [
        (end, peer)
        for peer in snapshot.inventory.peers or ()
        if peer.connected and (end := login_expires_at(lifetime, peer)) is not None
        if 0 < end - snapshot.now < limit
    ]
    if soon:
        names = snapshot.names([peer for _, peer in soon])
        is_single = len(soon) == 1
        logins, verb = ("Login", "expires") if is_single else ("Logins", "expire")
        yield snapshot.finding(
            "NetBirdLoginExpiresSoon",
            f"{logins} of {with_noun(len(soon), 'connected peer')}",
            f"{verb} within {with_noun(ceil(limit / HOUR), 'hour')}{names}.",
            until=min(end for end, _ in soon),
        )


def setup_keys(snapshot: Snapshot) -> Iterator[Finding]:
    """Report reusable setup keys that expire soon, have expired or are used up.

    An expiry is reported only if the key is in use. Revoked keys are never reported.
    """
    days, share = snapshot.thresholds.days, snapshot.thresholds.shares["setup_key_used"]
    for key in snapshot.inventory.setup_keys or ():
        if key.type != "reusable" or key.state == "revoked":
            continue
        subject = f"Setup key {safe_line(key.name or key.id)}"
        used = timestamp(key.last_used)
        in_use = used is not None and snapshot.now - used < days["in_use"] * DAY
        end = timestamp(key.expires)
        # The NetBird API does not say when a key was created.
        life = None if end is None else Lifetime(None, end)
        limit = days["setup_key_soon"] * DAY
        if in_use and life and life.is_near_end(snapshot.now, limit, SOON):
            state = "expires soon" if life.ends_at > snapshot.now else "has expired"
            yield snapshot.finding(
                "NetBirdSetupKeyExpiresSoon",
                subject,
                f"{state}: machines used this key recently.",
                until=end,
            )
        spent = key.usage_limit and key.used_times / key.usage_limit >= share
        nearly = "nearly " if key.used_times < key.usage_limit else ""
        if spent and (in_use or key.state == "valid"):
            yield snapshot.finding(
                "NetBirdSetupKeyUsedUp",
                subject,
                f"is {nearly}used up: {key.used_times:,} of"
                f" {with_noun(key.usage_limit, 'use')}.",
                since=used,
            )


def access_tokens(snapshot: Snapshot) -> Iterator[Finding]:
    """Report expiring access tokens of the exporter's own user that were used today."""
    days = snapshot.thresholds.days
    for token in snapshot.inventory.access_tokens or ():
        end, used = timestamp(token.expiration_date), timestamp(token.last_used)
        if end is None or used is None or snapshot.now - used >= DAY:
            continue
        life = Lifetime(timestamp(token.created_at), end)
        limit = days["access_token_very_soon"] * DAY
        if life.is_near_end(snapshot.now, limit, VERY_SOON):
            alert, soon = "ApiExporterTokenExpiresVerySoon", "expires very soon"
        elif life.is_near_end(snapshot.now, days["access_token_soon"] * DAY, SOON):
            alert, soon = "ApiExporterTokenExpiresSoon", "expires soon"
        else:
            continue
        if end <= snapshot.now:
            soon = "has expired"
        yield snapshot.finding(
            alert,
            f"Access token {safe_line(token.name or token.id)}",
            f"of the exporter's user {soon}: create a new token.",
            until=end,
        )


def proxy_tokens(snapshot: Snapshot) -> Iterator[Finding]:
    """Report expiring tokens of self-hosted proxies that are in use."""
    days = snapshot.thresholds.days
    for token in snapshot.inventory.proxy_tokens or ():
        end, used = timestamp(token.expires_at), timestamp(token.last_used)
        if end is None or used is None or token.revoked:
            continue
        life = Lifetime(timestamp(token.created_at), end)
        if (
            life.is_near_end(snapshot.now, days["proxy_token_soon"] * DAY, SOON)
            and snapshot.now - used < days["in_use"] * DAY
        ):
            yield snapshot.finding(
                "NetBirdProxyTokenExpiresSoon",
                f"Proxy token {safe_line(token.name or token.id)}",
                "expires soon: the proxy that uses this token stops then."
                if end > snapshot.now
                else "has expired: the proxy that uses this token cannot connect.",
                until=end,
            )


def certificates(snapshot: Snapshot) -> Iterator[Finding]:
    """Report expiring certificates: the NetBird API's and the client certificate."""
    now, limit = snapshot.now, snapshot.thresholds.days["certificate_soon"] * DAY
    server, client = snapshot.server_certificate, snapshot.client_certificate
    if server is not None and server.is_near_end(now, limit, SOON):
        yield snapshot.finding(
            "ApiExporterUpstreamCertificateExpiresSoon",
            "The certificate of the NetBird API",
            "expires soon: peers and this exporter cannot connect after that."
            if server.ends_at > now
            else "has expired: peers and this exporter cannot connect.",
            until=server.ends_at,
        )
    if client is not None and client.is_near_end(now, limit, SOON):
        yield snapshot.finding(
            "ApiExporterClientCertificateExpiresSoon",
            "The exporter's client certificate",
            "expires soon: the gateway of the NetBird API refuses requests after that."
            if client.ends_at > now
            else "has expired: the gateway of the NetBird API refuses requests.",
            until=client.ends_at,
        )


ROWS = (
    Finder(certificates),
    Finder(access_tokens, ("users", "access_tokens")),
    Finder(logins, ("peers", "accounts")),
    Finder(setup_keys, ("setup_keys",)),
    Finder(proxy_tokens, ("proxy_tokens",)),
)
