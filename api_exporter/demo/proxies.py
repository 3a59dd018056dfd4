"""The reverse proxy: services in several states, domains, clusters and tokens."""

from collections.abc import Iterator

from api_exporter.demo.cast import DATABASE
from api_exporter.demo.groups import ALL
from api_exporter.demo.moment import Moment
from api_exporter.demo.peers import peer_id
from api_exporter.demo.schedules import DAY, HOUR, MINUTE, WEEK
from api_exporter.demo.story import NO_CERTIFICATE, NO_TUNNEL, OPEN, OWN_PROXY_DOWN
from api_exporter.demo.wire import ZERO_TIME, rfc3339, xid

_CLUSTER = "eu.proxy.example.com"

_ASKED = {"bearer_auth": {"distribution_groups": [ALL.id], "enabled": True}}
"""Who comes is asked who they are."""


def services(moment: Moment) -> Iterator[object]:
    renewed = rfc3339(moment.latest(60 * DAY))
    issued = {"status": "active", "certificate_issued_at": renewed}
    yield _service(1, "app", issued, auth=_ASKED)
    tried = OPEN.lasts(moment.at)
    yield _service(2, "wiki", issued, auth={} if tried else _ASKED)
    failed = NO_CERTIFICATE.lasts(moment.at)
    state = {"status": "certificate_failed"} if failed else issued
    yield _service(3, "shop", state, auth=_ASKED)
    cut = NO_TUNNEL.lasts(moment.at)
    state = {"status": "tunnel_not_created" if cut else "certificate_pending"}
    yield _service(4, "new", state, auth=_ASKED)
    yield _service(
        5,
        "tcp <db>",
        {"status": "tunnel_not_created"},
        enabled=False,
        listen_port=5432,
        mode="tcp",
        port_auto_assigned=True,
        targets=[],
        terminated=True,
    )
    limits = {"allowed_cidrs": ["203.0.113.0/24"], "blocked_countries": ["XK"]}
    yield _service(6, "intranet", issued, access_restrictions=limits)


def domains(_moment: Moment) -> Iterator[object]:
    yield {
        "domain": _CLUSTER,
        "id": "",
        "require_subdomain": True,
        "supports_crowdsec": False,
        "supports_custom_ports": True,
        "supports_private": False,
        "type": "free",
        "validated": True,
    }
    for number, validated in ((1, True), (2, False)):
        yield {
            "domain": f"apps{number}.example.org",
            "id": xid("d2w", number),
            "target_cluster": _CLUSTER,
            "type": "custom",
            "validated": validated,
        }


def clusters(moment: Moment) -> Iterator[object]:
    """One of two proxies is updated every hour, one that is alone restarts.

    A cluster's id is that of one of its proxies, and a proxy has another at each start.
    """
    updated = moment.latest(HOUR)
    yield {
        "address": _CLUSTER,
        "connected_proxies": 1 if moment.at - updated < 5 * MINUTE else 2,
        "id": xid("d2x", updated),
        "online": True,
        "private": False,
        "require_subdomain": True,
        "supports_crowdsec": False,
        "supports_custom_ports": True,
        "type": "shared",
    }
    moved = OWN_PROXY_DOWN.lasts(moment.at)
    yield {
        "address": "own.proxy.example.com",
        "connected_proxies": int(not moved),
        "id": xid("d2x", 2),
        "online": not moved,
        "type": "account",
    }
    restarted = moment.latest(50 * MINUTE, 10 * MINUTE)
    online = moment.at - restarted >= 5 * MINUTE
    yield {
        "address": "lab.proxy.example.com",
        "connected_proxies": int(online),
        "id": xid("d2x", restarted + 1),
        "online": online,
        "type": "account",
    }


def proxy_tokens(moment: Moment) -> Iterator[object]:
    """The one in use is renewed each week, a day after it is to end within two."""
    weekly, renewed = moment.latest(WEEK), moment.latest(90 * DAY)
    yield {
        "created_at": rfc3339(weekly),
        "expires_at": rfc3339(weekly + 20 * DAY),
        "id": xid("d2y", 1),
        "last_used": rfc3339(moment.latest(MINUTE)),
        "name": "edge-1",
        "revoked": False,
    }
    yield {
        "created_at": ZERO_TIME,
        "id": xid("d2y", 2),
        "name": "no expiry, never used",
        "revoked": False,
    }
    yield {
        "created_at": rfc3339(renewed),
        "expires_at": rfc3339(renewed + 100 * DAY),
        "id": xid("d2y", 3),
        "name": "leaked",
        "revoked": True,
    }


def _service(
    number: int, name: str, state: dict[str, str], **fields: object
) -> dict[str, object]:
    return {
        "auth": {},
        "domain": f"{number}.apps1.example.org",
        "enabled": True,
        "id": xid("d2v", number),
        "listen_port": 0,
        "meta": {"created_at": "2025-03-01T10:00:00Z", **state},
        "mode": "http",
        "name": name,
        "pass_host_header": True,
        "port_auto_assigned": False,
        "private": False,
        "proxy_cluster": _CLUSTER,
        "rewrite_redirects": False,
        "targets": [
            {
                "enabled": True,
                "host": "",
                "options": {},
                "path": "/",
                "port": 8080,
                "protocol": "http",
                "target_id": peer_id(DATABASE),
                "target_type": "peer",
            }
        ],
        "terminated": False,
        **fields,
    }
