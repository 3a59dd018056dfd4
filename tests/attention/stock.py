"""An exporter of a stock account, and single changes of the account."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from api_exporter.netbird.resources import RESOURCE_BY_NAME, UP
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.settings import parsers
from api_exporter.world import World
from tests.bodies import STOCK_TIME, stock
from tests.parts import quota

Record = dict[str, Any]
"""A record as the API sends it."""

Reply = bytes | UpstreamError

MINUTE, HOUR, DAY = 60, 3600, 86_400

HAPPENS = 12 * MINUTE
"""Time of a change, in seconds from the recording: a drop needs ten minutes of data."""


class Stock(AccountNetwork):
    """An exporter of the stock account that reads the peers every two minutes.

    It reads every other resource every three minutes.

    Attributes:
        replies: the responses of the NetBird API by path.
    """

    def __init__(self, important: tuple[str, ...] = ()) -> None:
        refused = UpstreamError("forbidden", "403: permission denied")
        self.replies: dict[str, Reply] = {**stock(), "api/users/current": refused}
        self.clock = Clock()
        super().__init__(
            fetch=self.fetch,
            quota=quota(
                parsers.collectors("default,memberships"),
                {**dict.fromkeys(RESOURCE_BY_NAME, 3.0 * MINUTE), UP: 2.0 * MINUTE},
            ),
            world=World(self.clock, self.now, lambda: 0.5),
            registry=CollectorRegistry(),
            options=NetworkOptions(important_groups=important),
        )
        self.startService()

    def now(self) -> float:
        return STOCK_TIME + self.clock.seconds()

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        reply = self.replies[path]
        if isinstance(reply, UpstreamError):
            return fail(reply)
        return succeed(ResponseBody(reply))

    def minute(self) -> None:
        """Advance the clock by a minute, from one due call to the next."""
        end = self.clock.seconds() + MINUTE
        while (due := min(c.getTime() for c in self.clock.getDelayedCalls())) <= end:
            self.clock.advance(max(0.0, due - self.clock.seconds()))
        self.clock.advance(end - self.clock.seconds())

    def told(self) -> frozenset[str]:
        """Return the alerts of the current findings."""
        return frozenset(one.alert for one in self.attention.found.findings)


class Thing(Struct, frozen=True):
    """A change of the account.

    Attributes:
        alerts: the alerts of the change and of its consequences; "" if all is well.
        replies: the responses of the API during the change, by path.
        base: the responses before and after, if not those of the stock account.
        before: the alerts of `base`.
        important: IMPORTANT_GROUPS.
        others: alerts of the change that have no finding.
        noticed: seconds until a refused resource is requested again.
    """

    alerts: str
    replies: dict[str, Reply]
    base: dict[str, Reply] = {}
    before: str = ""
    important: tuple[str, ...] = ()
    others: str = ""
    noticed: int = 0
    name: str = ""


def _named(things: Mapping[str, Thing]) -> tuple[Thing, ...]:
    return tuple(replace(thing, name=name) for name, thing in things.items())


PEERS = "api/peers"
GROUPS = "api/groups"
KEYS = "api/setup-keys"
SERVICES = "api/reverse-proxies/services"
[TOKENS] = (path for path in stock() if path.endswith("/tokens"))


def at(seconds: float) -> str:
    """Return the time so many seconds after the recording."""
    return datetime.fromtimestamp(STOCK_TIME + seconds, UTC).isoformat()


def changed(path: str, change: Callable[[list[Any]], object]) -> dict[str, Reply]:
    """Return the response at a path after a change of its records."""
    records = json.loads(stock()[path])
    change(records)
    return {path: json.dumps(records).encode()}


def each(path: str, *which: str, **fields: object) -> dict[str, Reply]:
    """Return the response in which some records, or all, have other fields."""

    def change(records: list[Record]) -> None:
        for record in records:
            if not which or record["name"] in which:
                record.update(fields)

    return changed(path, change)


def added(path: str, **fields: object) -> dict[str, Reply]:
    """Return the response with one more record."""
    return changed(path, lambda records: records.append({"id": "x", **fields}))


def peer(name: str) -> str:
    [id_] = (one["id"] for one in json.loads(stock()[PEERS]) if one["name"] == name)
    return str(id_)


def network(*routers: str) -> dict[str, Reply]:
    """Return responses with one more network: a resource behind these peers."""
    ids = [f"r{number}" for number in range(len(routers))]
    one = {"name": "lan", "routers": ids, "resources": ["lan"], "policies": []}
    resource = {"name": "nas", "address": "10.0.0.9/32", "type": "host"}
    return {
        **added("api/networks", **one),
        "api/networks/routers": json.dumps(
            [
                {"id": id_, "enabled": True, "metric": 9999, "peer": peer(name)}
                for id_, name in zip(ids, routers, strict=True)
            ]
        ).encode(),
        "api/networks/resources": json.dumps(
            [{"id": "lan", "enabled": True, **resource}]
        ).encode(),
    }


def routes(*routers: str) -> dict[str, Reply]:
    """Return a response with an exit node on each of these peers."""
    way = {"network_id": "exit", "network": "0.0.0.0/0", "enabled": True}
    return {
        "api/routes": json.dumps(
            [{"id": name, "peer": peer(name), **way} for name in routers]
        ).encode()
    }


def group(name: str, *members: str) -> dict[str, Reply]:
    """Return a response with one more group, of these peers."""
    peers = [{"id": peer(member), "name": member} for member in members]
    return added(GROUPS, name=name, peers=peers, peers_count=len(peers))


def key(**fields: object) -> dict[str, Reply]:
    """Return a response with one more setup key, with the dashboard's seven days."""
    usual = {"name": "new", "type": "reusable", "valid": True, "state": "valid"}
    return added(KEYS, **{**usual, "expires": at(7 * DAY), **fields})


def service(status: str = "active", **fields: object) -> dict[str, Reply]:
    """Return a response with one more proxy service, without authentication."""
    usual = {"name": "wiki", "domain": "wiki.example.org", "mode": "http"}
    meta = {"status": status, "created_at": at(-DAY)}
    return added(SERVICES, **{**usual, "enabled": True, "meta": meta, **fields})


ASKED = {"password_auth": {"enabled": True}}


def check(version: str, *, used: bool) -> dict[str, Reply]:
    """Return responses with a posture check that the policy may use."""
    demanded = {"nb_version_check": {"min_version": version}}
    uses = {"source_posture_checks": ["x"]} if used else {}
    return {
        **added("api/posture-checks", name="new clients", checks=demanded),
        **each("api/policies", **uses),
    }


NOBODY = {"id": "x", "name": "nobody", "peers_count": 0, "resources_count": 0}


def policy(**sides: object) -> dict[str, Reply]:
    """Return a response in which the policy has other groups."""
    return changed("api/policies", lambda all_: all_[0]["rules"][0].update(sides))


def settings(**fields: object) -> dict[str, Reply]:
    """Return a response in which the account has other settings."""
    return changed("api/accounts", lambda all_: all_[0]["settings"].update(fields))


def connected(*, but: tuple[str, ...] = ()) -> dict[str, Reply]:
    """Return a response in which all peers are connected, except some."""
    return changed(
        PEERS,
        lambda peers: [
            peer.update(connected=True, login_expired=False)
            if peer["name"] not in but
            else peer.update(connected=False, last_seen=at(HAPPENS))
            for peer in peers
        ],
    )


BROKEN = UpstreamError("http_5xx", "500: broken")
FORBIDDEN = UpstreamError("forbidden", "403: no")
SERVERS = ("backup", "gw-office", "nas", "srv-db-01", "srv-web-01")
LAPTOPS = ("DESKTOP-HR", "LAPTOP-7F3K", "mbp-jan.local", "mbp-olivia.local")
LOST = each(PEERS, *SERVERS, connected=False, last_seen=at(HAPPENS))
EMPTY = {
    PEERS: b"[]",
    **each(GROUPS, peers=None, peers_count=0),
    **policy(sources=[NOBODY], destinations=[NOBODY]),
}
OPS = ("ops",)


THINGS = _named(
    {
        "a network without a router": Thing(
            "NetBirdNetworkUnreachable",
            network("srv-ci"),
            others="NetBirdResourceUnreachable",
        ),
        "a network with its last router": Thing(
            "NetBirdNetworkRedundancyLost", network("srv-ci", "nas")
        ),
        "a route to nowhere": Thing("NetBirdRouteUnreachable", routes("srv-ci")),
        "a route with its last router": Thing(
            "NetBirdRouteRedundancyLost", routes("srv-ci", "nas")
        ),
        "peers fail": Thing("ApiExporterUpstreamFailing", {PEERS: BROKEN}),
        "a peer that cannot be read": Thing(
            "ApiExporterRecordsRejected", each(PEERS, "iPhone", connected="perhaps")
        ),
        "groups are null": Thing("", {GROUPS: b"null"}, others="ApiExporterDataLate"),
        "our token ends in ten days": Thing(
            "ApiExporterTokenExpiresSoon", each(TOKENS, expiration_date=at(10 * DAY))
        ),
        "our token ends in two days": Thing(
            "ApiExporterTokenExpiresVerySoon", each(TOKENS, expiration_date=at(2 * DAY))
        ),
        "our tokens are not told": Thing(
            "ApiExporterTokenNotWatched", {TOKENS: FORBIDDEN}, noticed=HOUR
        ),
        "a proxy cluster is offline": Thing(
            "NetBirdProxyClusterOffline",
            added("api/reverse-proxies/clusters", address="own.example", online=False),
        ),
        "a service without a certificate": Thing(
            "NetBirdProxyCertificateFailed", service("certificate_failed", auth=ASKED)
        ),
        "a service without a tunnel": Thing(
            "NetBirdProxyTunnelFailed", service("tunnel_not_created", auth=ASKED)
        ),
        "a service in error": Thing(
            "NetBirdProxyTunnelFailed", service("error", auth=ASKED)
        ),
        "an open service": Thing("NetBirdProxyServiceOpen", service()),
        "a service that allows everybody": Thing(
            "NetBirdProxyServiceOpen",
            service(access_restrictions={"allowed_cidrs": ["10.0.0.0/8", "::/0"]}),
        ),
        "a service that only blocks": Thing(
            "NetBirdProxyServiceOpen",
            service(access_restrictions={"blocked_countries": ["XK"]}),
        ),
        "a proxy's token ends": Thing(
            "NetBirdProxyTokenExpiresSoon",
            added(
                "api/reverse-proxies/proxy-tokens",
                name="edge",
                expires_at=at(3 * DAY),
                last_used=at(0),
            ),
        ),
        "a setup key is used up": Thing(
            "NetBirdSetupKeyUsedUp",
            key(usage_limit=10, used_times=9, last_used=at(-HOUR)),
        ),
        "a setup key in use ends": Thing(
            "NetBirdSetupKeyExpiresSoon",
            key(expires=at(12 * HOUR), last_used=at(-DAY), used_times=3),
        ),
        "a peer waits": Thing(
            "NetBirdPeerAwaitsApproval", each(PEERS, "iPhone", approval_required=True)
        ),
        "a user waits": Thing(
            "NetBirdUserAwaitsApproval",
            added("api/users", name="New", pending_approval=True, status="blocked"),
        ),
        "a policy for nobody": Thing(
            "NetBirdPolicyEmpty", {**group("nobody"), **policy(destinations=[NOBODY])}
        ),
        "a narrow range": Thing(
            "NetBirdAddressPoolNearlyFull", settings(network_range="100.123.0.0/29")
        ),
        "an old client where a policy demands a newer one": Thing(
            "NetBirdPeersOutdated", check("0.75.0", used=True)
        ),
        "a posture check that nothing uses": Thing(
            "NetBirdPostureCheckUnused", check("0.99.0", used=False)
        ),
        "a login of a month ends": Thing(
            "NetBirdLoginExpiresSoon",
            {
                **settings(peer_login_expiration=30 * DAY),
                **each(PEERS, "iPhone", last_login=at(-29.5 * DAY)),
            },
        ),
        "servers are lost at once": Thing("NetBirdFleetDropped", LOST),
        "servers are lost while a network is": Thing(
            "NetBirdFleetDropped NetBirdNetworkUnreachable",
            LOST,
            base=network("srv-ci"),
            before="NetBirdNetworkUnreachable",
            others="NetBirdResourceUnreachable",
        ),
        "an important peer is offline": Thing(
            "NetBirdImportantPeerOffline",
            group("ops", "nas", "srv-ci"),
            base=group("ops", "nas"),
            important=OPS,
        ),
        "an important login has ended": Thing(
            "NetBirdImportantPeerOffline NetBirdImportantLoginExpired",
            group("ops", "nas", "Pixel 8"),
            base=group("ops", "nas"),
            important=OPS,
        ),
        "an important group is missing": Thing(
            "NetBirdImportantGroupMissing",
            {GROUPS: stock()[GROUPS]},
            base=group("ops", "nas"),
            important=OPS,
        ),
    }
)
"""Changes with alerts of their own, and no others."""

TRIFLES = _named(
    {
        "nothing": Thing("", {}),
        "a service that a network may use": Thing(
            "", service(access_restrictions={"allowed_cidrs": ["203.0.113.0/24"]})
        ),
        "a service for a country": Thing(
            "", service(access_restrictions={"allowed_countries": ["DE"]})
        ),
        "laptops are closed": Thing("", connected(but=LAPTOPS), base=connected()),
        "a setup key of a week": Thing("", key(updated_at=at(0))),
        "a revoked setup key": Thing(
            "",
            key(
                expires=at(HOUR),
                last_used=at(-HOUR),
                used_times=1,
                revoked=True,
                valid=False,
                state="revoked",
            ),
        ),
        "a member that is not listed": Thing(
            "",
            added(GROUPS, name="ops", peers=[{"id": "proxy"}], peers_count=1),
            base=group("ops", "nas"),
            important=OPS,
        ),
        "no peers": Thing("", EMPTY, base=EMPTY),
    }
)
"""Changes without a finding."""
