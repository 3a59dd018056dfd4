"""The company's whole network: the API's response on each path at any time.

A resource is a template with its records' fields, and a function if anything varies.
Machines create their two resources themselves, for speed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from api_exporter.demo.go_json import Record, array, encode
from api_exporter.netbird.bodies import DocumentDecoder
from api_exporter.subjects.table import RESOURCES
from simulation.company import agents, records
from simulation.company.fleet import SimulatedFleet
from simulation.company.people import EXPORTER_ID
from simulation.company.resource import Moment, Template

Content = Callable[[Moment, Template], Iterable[Record] | Record]
"""A function that returns a resource's records at a time, or its single object."""


def _records(_moment: Moment, template: Template) -> list[Record]:
    return template.records


def _document(_moment: Moment, template: Template) -> Record:
    return template.template


_CONTENTS: Mapping[str, Content] = {
    "accounts": records.accounts,
    "agent_consumption": agents.consumption,
    "agent_denials": agents.denials,
    "agent_guardrails": agents.guardrails,
    "agent_providers": agents.providers,
    "agent_settings": agents.settings,
    "agent_usage": agents.usage,
    "events": records.events,
    "networks": records.networks,
    "network_resources": records.resources,
    "network_routers": records.routers,
    "proxy_clusters": records.clusters,
    "proxy_tokens": records.tokens,
    "proxy_services": records.services,
    "setup_keys": records.setup_keys,
    "user_invites": agents.invites,
    "users": records.users,
    "access_tokens": records.access_tokens,
}
"""The functions of resources that vary; all others are their templates."""

PEERS = "/api/peers"
GROUPS = "/api/groups"

_RESOURCES: Mapping[str, tuple[str, Content]] = {
    f"/{resource.path.format(current_user=EXPORTER_ID)}": (
        resource.name,
        _CONTENTS.get(
            resource.name,
            _document if isinstance(resource.decoder, DocumentDecoder) else _records,
        ),
    )
    for resource in RESOURCES
}

PATHS = tuple(_RESOURCES)


class SimulatedNetwork:
    """A simulated company, determined by the number of machines, the seed and the time.
    About 4 % of `peers` machines are ephemeral, and some of those are missing at any
    time. Permanent faults, such as a lost router, need at least 15 machines.
    """

    def __init__(self, peers: int, seed: int = 0) -> None:
        self._fleet = SimulatedFleet(peers, seed)

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """Return a path's JSON in pieces, or None if there is no such path. `at` is in
        seconds since the epoch. A query may follow the path.
        """
        path, _, query = path.partition("?")
        if path not in PATHS:
            return None
        return self._pieces(path, replace(self._fleet.moment(at), query=query))

    def _pieces(self, path: str, moment: Moment) -> Iterator[bytes]:
        if path == PEERS:
            yield from self._fleet.peers(moment)
        elif path == GROUPS:
            yield from self._fleet.groups(moment)
        else:
            name, content = _RESOURCES[path]
            found = content(moment, moment.load(name))
            if isinstance(found, dict):
                yield encode(found)
            else:
                yield from array(map(encode, found))
        yield b"\n"
