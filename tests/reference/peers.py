"""Peers."""

from fractions import Fraction

from tests.reference.bodies import Known
from tests.reference.fields import Record, flag, instant, number, part, text
from tests.reference.joins import has, shown_peers
from tests.reference.page import Page, Settings, boolean

COUNTS = {
    "login_expired": "netbird_api_peers_login_expired",
    "approval_required": "netbird_api_peers_approval_required",
    "ssh_enabled": "netbird_api_peers_ssh_enabled",
    "ephemeral": "netbird_api_peers_ephemeral",
}


def peers(known: Known, settings: Settings) -> Page:
    page = Page()
    if not has(known, "peers"):
        return page
    all_peers = known["peers"]
    page.halves(
        "netbird_api_peers", (flag(p, "connected") for p in all_peers), "connected"
    )
    for field, family in COUNTS.items():
        page.put(family, sum(flag(peer, field) for peer in all_peers))
    page.put("netbird_api_peers_never_logged_in", sum(map(_has_no_login, all_peers)))
    for method in ("user", "setup_key"):
        for value in ("true", "false"):
            page.add(
                "netbird_api_peers_by_enrolment", 0, enrolled_by=method, connected=value
            )
    for peer in all_peers:
        page.add("netbird_api_peers_by_os", 1, os=_system(text(peer, "os")))
        version = text(peer, "version") or "unknown"
        page.add("netbird_api_peers_by_version", 1, version=version)
        country = text(peer, "country_code") or "unknown"
        page.add("netbird_api_peers_by_country", 1, country=country)
        if not flag(peer, "ephemeral"):
            page.add(
                "netbird_api_peers_by_enrolment",
                1,
                enrolled_by="user" if text(peer, "user_id") else "setup_key",
                connected=boolean(flag(peer, "connected")),
            )
    for peer in shown_peers(known, settings):
        _peer(page, peer, settings)
        if has(known, "accounts"):
            end = _login_expiry(peer, known["accounts"])
            page.put(
                "netbird_api_peer_login_expiration_timestamp_seconds",
                end,
                peer_id=text(peer, "id"),
                peer=text(peer, "name"),
            )
    return page


def _peer(page: Page, peer: Record, settings: Settings) -> None:
    id_, name = text(peer, "id"), text(peer, "name")
    address = text(peer, "connection_ip")
    personal = {
        "city": text(peer, "city_name"),
        "hostname": text(peer, "hostname"),
        "connection_ip": "" if address == "<nil>" else address,
        "serial_number": text(peer, "serial_number"),
    }
    page.put(
        "netbird_api_peer_info",
        1,
        peer_id=id_,
        peer=name,
        dns_label=text(peer, "dns_label"),
        ip=text(peer, "ip"),
        os=text(peer, "os"),
        version=text(peer, "version"),
        ui_version=text(peer, "ui_version"),
        country=text(peer, "country_code"),
        user_id=text(peer, "user_id"),
        ssh_enabled=boolean(flag(peer, "ssh_enabled")),
        ephemeral=boolean(flag(peer, "ephemeral")),
        ipv6=text(peer, "ipv6"),
        kernel_version=text(peer, "kernel_version"),
        **{kind: of for kind, of in personal.items() if kind in settings.personal},
    )
    values = {
        "connected": flag(peer, "connected"),
        "last_seen_timestamp_seconds": (
            None if flag(peer, "connected") else instant(peer, "last_seen")
        ),
        "created_timestamp_seconds": instant(peer, "created_at"),
        "last_login_timestamp_seconds": instant(peer, "last_login"),
        "login_expired": flag(peer, "login_expired"),
        "approval_required": flag(peer, "approval_required"),
    }
    for family, value in values.items():
        page.put(f"netbird_api_peer_{family}", value, peer_id=id_, peer=name)


def _system(os: str) -> str:
    """Return the words before the first one that begins with a digit."""
    words: list[str] = []
    for word in os.split():
        if word[0].isdigit():
            break
        words.append(word)
    return " ".join(words) or "unknown"


def _has_no_login(peer: Record) -> bool:
    return text(peer, "user_id") != "" and instant(peer, "last_login") is None


def _login_expiry(peer: Record, accounts: list[Record]) -> Fraction | None:
    login = instant(peer, "last_login")
    if not accounts or login is None or not text(peer, "user_id"):
        return None
    chosen = part(accounts[0], "settings")
    if not flag(chosen, "peer_login_expiration_enabled"):
        return None
    if not flag(peer, "login_expiration_enabled"):
        return None
    end = login + number(chosen, "peer_login_expiration")
    return end if end > 0 else None
