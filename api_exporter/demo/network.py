"""The company's whole network: what its API has to say on each path at any instant."""

from collections.abc import Callable, Iterable, Iterator

from api_exporter.demo import (
    account,
    audit,
    dns,
    networks,
    people,
    policies,
    proxies,
    routes,
)
from api_exporter.demo.fleet import Fleet
from api_exporter.demo.moment import Moment
from api_exporter.demo.wire import array, encode

_OBJECTS: dict[str, Callable[[Moment], object]] = {
    "/api/dns/settings": dns.settings,
    "/api/instance/version": account.instance_version,
}

_LISTS: dict[str, Callable[[Moment], Iterable[object]]] = {
    "/api/accounts": account.accounts,
    "/api/dns/nameservers": dns.nameservers,
    "/api/dns/zones": dns.zones,
    "/api/events/audit": audit.events,
    "/api/networks": networks.networks,
    "/api/networks/resources": networks.resources,
    "/api/networks/routers": networks.routers,
    "/api/policies": policies.policies,
    "/api/posture-checks": policies.posture_checks,
    "/api/reverse-proxies/clusters": proxies.clusters,
    "/api/reverse-proxies/domains": proxies.domains,
    "/api/reverse-proxies/proxy-tokens": proxies.proxy_tokens,
    "/api/reverse-proxies/services": proxies.services,
    "/api/routes": routes.routes,
    "/api/setup-keys": account.setup_keys,
    "/api/users": people.users,
    f"/api/users/{people.EXPORTER_ID}/tokens": people.access_tokens,
}

PEERS = "/api/peers"
GROUPS = "/api/groups"

PATHS = (PEERS, GROUPS, *_OBJECTS, *_LISTS)


class Network:
    """A simulated company: a function of how many machines, the seed and the instant.

    Of `peers` machines about 4 % are ephemeral, and some of those are away at any
    instant. What has to hold at every instant, such as a router that is lost, takes 15.
    """

    def __init__(self, peers: int, seed: int = 0) -> None:
        self._fleet = Fleet(peers, seed)

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """A path's JSON in pieces, or None where there is no such path.

        `at` is in seconds since the epoch.
        """
        if path not in PATHS:
            return None
        return self._pieces(path, self._fleet.moment(at))

    def _pieces(self, path: str, moment: Moment) -> Iterator[bytes]:
        if path == PEERS:
            yield from self._fleet.peers(moment)
        elif path == GROUPS:
            yield from self._fleet.groups(moment)
        elif path in _OBJECTS:
            yield encode(_OBJECTS[path](moment))
        else:
            yield from array(map(encode, _LISTS[path](moment)))
        yield b"\n"
