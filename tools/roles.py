"""The resources that a token of each role reads: a table in `docs/security.md`.

The bodies of `/api/users/current` are in `tests/bodies/roles.txt`, made from
NetBird's code. The server here answers as NetBird does. A real `AccountNetwork`
reads it.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock

from api_exporter.clocks import Clocks
from api_exporter.netbird.resources import ACCESS_LOG, CURRENT_USER, PEERS
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME, RULES
from tests.bodies import FOLDER, NOON, bodies, body
from tests.parts import CURRENT_USER as CURRENT_PATH
from tests.parts import SERVICE_USER, account_settings, request_plan
from tools.markdown import table

SERVICE = "service user"

ROLES = (
    *(SERVICE, "owner", "admin", "auditor", "network_admin", "agent_network_admin"),
    *("usage_viewer", "user", "restricted_user", "billing_admin"),
)

_OWN_ROWS = {"agent_usage", "agent_denials", "users"}
"""Resources of which a human without the permission gets a part, with 200."""

_RECORDED = {SERVICE, "owner", "admin", "auditor", "network_admin", "user"}
"""Roles that were recorded on all paths of the Agent Network, on NetBird 0.77.1."""


def permissions(role: str) -> bytes:
    return bodies((FOLDER / "roles.txt").read_bytes())[role]


def granted(role: str, module: str) -> bool:
    if role == SERVICE:
        return True
    modules = json.loads(permissions(role))["permissions"]["modules"]
    return bool(modules[module]["read"])


def answer(role: str, path: str) -> bytes | UpstreamError:
    """Return the response of NetBird 0.78 to a token of that role."""
    plain = path.partition("?")[0]
    names = (r.name for r in RESOURCE_BY_NAME.values() if r.path == plain)
    name = next(names, "access_tokens")
    if name == CURRENT_USER:
        return SERVICE_USER if role == SERVICE else permissions(role)
    if granted(role, RULES.permissions.get(name, "pats")):
        if name == "users" and role != SERVICE:
            return _users(role)
        return b"[]" if "end_date" in path else body(name)
    if name == PEERS:  # the user's own peers
        return json.dumps(json.loads(body(PEERS))[: int(role == "user")]).encode()
    if name == "agent_providers":  # those that the user's policies allow
        return body(name)
    if name in _OWN_ROWS:
        return b'{"data":[],"total_records":0}' if name == "agent_denials" else b"[]"
    return UpstreamError("forbidden", "403: permission denied")


def _users(role: str) -> bytes:
    others = [user for user in json.loads(body("users")) if not user["is_current"]]
    return json.dumps([*others, json.loads(permissions(role))]).encode()


class Watched:
    """An exporter, and a NetBird that answers by the role of its token.

    Attributes:
        failure: the error for `/api/users/current`, if that fails.
        peers_failure: likewise, for the peers.
        requests: the paths of all requests.
        seen: by request, `up` and whether the page had the number of peers.
    """

    def __init__(self, role: str, failure: UpstreamError | None = None) -> None:
        self.role, self.failure = role, failure
        self.peers_failure: UpstreamError | None = None
        self.requests: list[str] = []
        self.seen: list[tuple[bool | None, bool]] = []
        self._clock = Clock()
        self.network = AccountNetwork(
            settings=account_settings(),
            fetch=self._fetch,
            plan=request_plan([collector.name for collector in COLLECTORS]),
            clocks=Clocks(
                self._clock, lambda: NOON + self._clock.seconds(), lambda: 0.5, ""
            ),
            registry=CollectorRegistry(),
        )
        self.network.startService()
        self.advance(30)

    async def _fetch(self, path: str, _patience: float) -> ResponseBody:
        self.requests.append(path)
        up = self.network.states[PEERS].up
        self.seen.append((up, b"\nnetbird_api_peers{" in self.network.text()))
        self._clock.advance(0.001)
        found = answer(self.role, path)
        if path == CURRENT_PATH and self.failure is not None:
            found = self.failure
        if path == "api/peers" and self.peers_failure is not None:
            found = self.peers_failure
        if isinstance(found, UpstreamError):
            raise found
        return ResponseBody(found)

    def advance(self, seconds: float) -> None:
        for _ in range(300):
            self._clock.advance(seconds / 300)

    def state(self, name: str) -> str:
        now = NOON + self._clock.seconds()
        return self.network.states[name].word(now)


def network(role: str) -> AccountNetwork:
    """Return an exporter with a token of that role, after its first requests."""
    return Watched(role).network


def results(role: str) -> dict[str, str]:
    """Return the result for each resource that a role may be refused."""
    exporter = network(role)
    found: dict[str, str] = {}
    for name in RULES.permissions:
        if name == ACCESS_LOG:
            continue
        restricted = name in exporter.inventory.withheld
        known = exporter.inventory.records.get(name) is not None
        assert not (restricted and known), name
        found[name] = "withheld" if restricted else "whole" if known else "unknown"
    return found


def _ground(role: str, module: str) -> str:
    if role == "usage_viewer" and module == "agent_network.logs":
        return "u"
    agents = module.startswith("agent_network") and role in _RECORDED
    return "r" if role == SERVICE or agents else "c"


def _rows() -> Iterator[tuple[str, list[str]]]:
    names = sorted(RULES.permissions, key=lambda n: RULES.permissions[n])
    for module, of in groupby(names, key=lambda name: RULES.permissions[name]):
        yield module, list(of)


def roles_table() -> str:
    """Return a column for each role; roles with the same results share one, and so do
    paths a row.
    """
    by_role: Mapping[str, dict[str, str]] = {role: results(role) for role in ROLES}
    columns: dict[tuple[str, ...], list[str]] = {}
    for role in ROLES:
        cells = tuple(
            f"{by_role[role][resources[0]]} {_ground(role, module)}"
            for module, resources in _rows()
        )
        columns.setdefault(cells, []).append(role)
    rows: dict[tuple[str, ...], list[str]] = {}
    for i, (_, resources) in enumerate(_rows()):
        paths = rows.setdefault(tuple(cells[i] for cells in columns), [])
        paths += (RESOURCE_BY_NAME[n].path.removeprefix("api/") for n in resources)
    return table(
        ("paths below `/api/`", *(", ".join(names) for names in columns.values())),
        ((", ".join(f"`{p}`" for p in paths), *cells) for cells, paths in rows.items()),
    )
