"""What ends soon: logins, setup keys, tokens and certificates."""

from collections.abc import Iterator
from math import ceil

from api_exporter.attention.finding import Finding, Seen, counted, plain
from api_exporter.attention.thresholds import DAY, HOUR
from api_exporter.exposition.tally import chunks
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.facts.account import login_end, login_lifetime
from api_exporter.netbird.records import Peer


def logins(seen: Seen) -> Iterator[Finding | None]:
    """Connected peers that are cut off unless somebody logs in.

    Where logins do not last for days, to log in again is routine.
    """
    days, share = seen.thresholds.days, seen.thresholds.shares["login_soon"]
    lifetime = login_lifetime(seen.inventory.accounts or ())
    if lifetime is None or lifetime < days["login_routine"] * DAY:
        return
    limit = min(days["login_soon"] * DAY, share * lifetime)
    peers, soon = seen.inventory.peers or (), list[tuple[float, Peer]]()
    for some in chunks(peers):
        soon += [
            (end, peer)
            for peer in some
            if peer.connected and (end := login_end(lifetime, peer)) is not None
            if 0 < end - seen.now < limit
        ]
        yield None
    if soon:
        names = yield from seen.names([peer for _, peer in soon])
        verb = "is" if len(soon) == 1 else "are"
        yield seen.finding(
            "NetBirdLoginExpiresSoon",
            "Logins",
            f"{counted(len(soon), 'connected peer')} {verb} cut off within"
            f" {counted(ceil(limit / HOUR), 'hour')} unless somebody logs in"
            f"{names}.",
            until=min(end for end, _ in soon),
        )


def setup_keys(seen: Seen) -> Iterator[Finding]:
    """Reusable ones that are in use and will soon be of no use.

    Nobody waits for the end of one that is not used; whoever has revoked one knows.
    """
    days, share = seen.thresholds.days, seen.thresholds.shares["setup_key_used"]
    for key in seen.inventory.setup_keys or ():
        if key.type != "reusable" or key.state == "revoked":
            continue
        named = f"Setup key {plain(key.name or key.id)}"
        used = timestamp(key.last_used)
        in_use = used is not None and seen.now - used < days["in_use"] * DAY
        end = timestamp(key.expires)
        soon = end is not None and end - seen.now < days["setup_key_soon"] * DAY
        if in_use and soon:
            left = counted(days["setup_key_soon"], "day")
            yield seen.finding(
                "NetBirdSetupKeyExpiresSoon",
                named,
                f"Machines can enrol with it for less than {left}."
                if key.state == "valid"
                else "Machines cannot enrol with it any more.",
                until=end,
            )
        spent = key.usage_limit and key.used_times / key.usage_limit >= share
        if spent and (in_use or key.state == "valid"):
            yield seen.finding(
                "NetBirdSetupKeyUsedUp",
                named,
                f"{key.used_times:,} of its {key.usage_limit:,} uses are spent.",
                since=used,
            )


def access_tokens(seen: Seen) -> Iterator[Finding]:
    """Tokens of the exporter's own user, used today."""
    days = seen.thresholds.days
    for token in seen.inventory.access_tokens or ():
        end, used = timestamp(token.expiration_date), timestamp(token.last_used)
        if end is None or used is None or seen.now - used >= DAY:
            continue
        if end - seen.now < days["access_token_very_soon"] * DAY:
            alert = "ApiExporterTokenExpiresVerySoon"
        elif end - seen.now < days["access_token_soon"] * DAY:
            alert = "ApiExporterTokenExpiresSoon"
        else:
            continue
        yield seen.finding(
            alert,
            f"Access token {plain(token.name or token.id)}",
            "The exporter's user has used it today: without it nothing is known of the"
            " network.",
            until=end,
        )


def proxy_tokens(seen: Seen) -> Iterator[Finding]:
    """Tokens of self-hosted proxies, in use."""
    days = seen.thresholds.days
    for token in seen.inventory.proxy_tokens or ():
        end, used = timestamp(token.expires_at), timestamp(token.last_used)
        if end is None or used is None or token.revoked:
            continue
        if (
            end - seen.now < days["proxy_token_soon"] * DAY
            and seen.now - used < days["in_use"] * DAY
        ):
            yield seen.finding(
                "NetBirdProxyTokenExpiresSoon",
                f"Proxy token {plain(token.name or token.id)}",
                "It is in use: the proxy stops when it ends.",
                until=end,
            )


def certificates(seen: Seen) -> Iterator[Finding]:
    """The upstream's, and our own where a gateway wants one."""
    soon = seen.now + seen.thresholds.days["certificate_soon"] * DAY
    if seen.upstream_ends is not None and seen.upstream_ends < soon:
        yield seen.finding(
            "ApiExporterUpstreamCertificateExpiresSoon",
            "Certificate of the upstream",
            "When it has ended, neither peers nor this exporter trust the upstream.",
            until=seen.upstream_ends,
        )
    if seen.own_ends is not None and seen.own_ends < soon:
        yield seen.finding(
            "ApiExporterClientCertificateExpiresSoon",
            "Certificate of the exporter",
            "When it has ended, the upstream's gateway lets nothing through: nothing is"
            " known of the network then.",
            until=seen.own_ends,
        )
