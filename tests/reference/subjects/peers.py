"""Peers."""

from fractions import Fraction

from tests.reference.fields import Known, Record, flag, instant, number, own, part, text
from tests.reference.joins import has, shown_peers
from tests.reference.page import Page, Settings, boolean
from tests.reference.shapes import WORDS, thing

RECORDS = {
    "peers": thing(
        "id user_id",
        "connected ssh_enabled ephemeral login_expired login_expiration_enabled"
        " approval_required",
        times="last_login",
        shown="name dns_label hostname ip ipv6 connection_ip country_code city_name"
        " serial_number os kernel_version version ui_version",
        shown_times="created_at last_seen",
        shown_others={
            "extra_dns_labels": WORDS,
            "local_flags": thing(shown_yes="remote_jobs_allowed"),
        },
    )
}


COUNTED = ("login_expired", "approval_required", "ssh_enabled", "ephemeral")
INFO = ("dns_label", "ip", "os", "version", "ui_version", "user_id", "ipv6")


def peers(page: Page, known: Known, settings: Settings) -> None:
    if not has(known, "peers"):
        return
    all_peers = known["peers"]
    page.halves("peers", all_peers, "connected")
    for field in COUNTED:
        page.put(f"peers_{field}", sum(flag(peer, field) for peer in all_peers))
    jobs = [_remote_jobs(peer) for peer in all_peers]
    page.put("peers_remote_jobs_allowed", jobs.count("true") if any(jobs) else None)
    page.put("peers_never_logged_in", sum(map(_has_no_login, all_peers)))
    for method in ("user", "setup_key"):
        for value in ("true", "false"):
            page.add("peers_by_enrolment", 0, enrolled_by=method, connected=value)
    for peer in all_peers:
        page.add("peers_by_os", 1, os=_system(text(peer, "os")))
        for of, field in (("version", "version"), ("country", "country_code")):
            page.add(f"peers_by_{of}", 1, **{of: text(peer, field) or "unknown"})
        if not flag(peer, "ephemeral"):
            page.add(
                "peers_by_enrolment",
                1,
                enrolled_by="user" if text(peer, "user_id") else "setup_key",
                connected=boolean(flag(peer, "connected")),
            )
    for peer in shown_peers(known, settings):
        _peer(page, peer, settings)
        if has(known, "accounts"):
            end = _login_expiry(peer, known["accounts"])
            page.put(
                "peer_login_expiration_timestamp_seconds", end, **own("peer", peer)
            )


def _peer(page: Page, peer: Record, settings: Settings) -> None:
    of = own("peer", peer)
    personal = settings.shown(peer, "hostname", "connection_ip", "serial_number")
    if personal.get("connection_ip") == "<nil>":
        personal["connection_ip"] = ""
    if "city" in settings.personal:
        personal["city"] = text(peer, "city_name")
    page.put(
        "peer_info",
        1,
        **of,
        **{name: text(peer, name) for name in (*INFO, "kernel_version")},
        **{name: boolean(flag(peer, name)) for name in ("ssh_enabled", "ephemeral")},
        **personal,
        country=text(peer, "country_code"),
        remote_jobs_allowed=_remote_jobs(peer),
    )
    page.put("peer_connected", flag(peer, "connected"), **of)
    for field in ("login_expired", "approval_required"):
        page.put(f"peer_{field}", flag(peer, field) or None, **of)
    page.time("peer_created", peer, "created_at", **of)
    page.time("peer_last_login", peer, "last_login", **of)
    if not flag(peer, "connected"):
        page.time("peer_last_seen", peer, "last_seen", **of)


def _system(os: str) -> str:
    """Return the words before the first one that begins with a digit."""
    words: list[str] = []
    for word in os.split():
        if word[0].isdigit():
            break
        words.append(word)
    return " ".join(words) or "unknown"


def _remote_jobs(peer: Record) -> str:
    """Return `true`, `false`, or "" where the server does not send the field."""
    flags = part(peer, "local_flags")
    known = flags.get("remote_jobs_allowed") is not None
    return boolean(flag(flags, "remote_jobs_allowed")) if known else ""


def _has_no_login(peer: Record) -> bool:
    return text(peer, "user_id") != "" and instant(peer, "last_login") is None


def _login_expiry(peer: Record, accounts: list[Record]) -> Fraction | None:
    login = instant(peer, "last_login")
    if not accounts or login is None or not text(peer, "user_id"):
        return None
    chosen = part(accounts[0], "settings")
    if not (
        flag(chosen, "peer_login_expiration_enabled")
        and flag(peer, "login_expiration_enabled")
    ):
        return None
    # The page has the sum of rounded seconds.
    end = Fraction(float(login)) + number(chosen, "peer_login_expiration")
    return end if end > 0 else None
