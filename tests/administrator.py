"""An account with the changes of an administrator: its lists after each step."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Record = dict[str, Any]
World = dict[str, list[Record]]

NOW = "2027-01-15T08:00:00Z"

_LIMITS = {
    "token_limit": {"enabled": True, "user_cap": 10, "group_cap": 100},
    "budget_limit": {},
}
_ENABLED = {"enabled": True}
_VIA_GROUP = {**_ENABLED, "peer_groups": ["group-@"]}
_VIA_PEER = {**_ENABLED, "peer": "peer-@"}
_SIDE = [{"id": "group-@", "name": "group @"}]
_RULE = {**_ENABLED, "id": "rule-@", "sources": _SIDE, "destinations": _SIDE}


def _record(kind: str, **fields: object) -> Record:
    return {"id": f"{kind}-@", "name": f"{kind} @", **fields}


def _route(kind: str, fields: Record) -> Record:
    id_ = f"route-{kind}-@"
    return {"id": id_, "network_id": id_, "network": id_, **fields}


CREATED: tuple[tuple[str, Record], ...] = (
    ("peers", _record("peer", connected=True, version="0.60.0", last_seen=NOW)),
    (
        "groups",
        _record("group", peers_count=0, resources_count=0, issued="api", peers=[]),
    ),
    ("members", {"group": "group-@", "peer": "peer-@"}),
    ("networks", _record("network", routers=[], resources=[])),
    ("network_routers", {"id": "router-group-@", "metric": 9, **_VIA_GROUP}),
    ("network_routers", {"id": "router-peer-@", "metric": 9, **_VIA_PEER}),
    ("network_resources", _record("resource", type="host", **_ENABLED)),
    ("routes", _route("group", _VIA_GROUP)),
    ("routes", _route("peer", _VIA_PEER)),
    (
        "posture_checks",
        _record("check", checks={"nb_version_check": {"min_version": "0.61.0"}}),
    ),
    (
        "policies",
        _record("policy", rules=[_RULE], source_posture_checks=["check-@"], **_ENABLED),
    ),
    ("users", {"id": "user-@", "role": "user"}),
    ("agent_providers", _record("provider", **_ENABLED)),
    ("agent_guardrails", {"id": "guardrail-@"}),
    (
        "agent_policies",
        _record(
            "agents",
            source_groups=["group-@"],
            destination_provider_ids=["provider-@"],
            guardrail_ids=["guardrail-@"],
            limits=_LIMITS,
            **_ENABLED,
        ),
    ),
    (
        "agent_budget_rules",
        _record(
            "budget",
            target_groups=["group-@"],
            target_users=["user-@", "peer-@"],
            limits=_LIMITS,
            **_ENABLED,
        ),
    ),
)
"""One request of the administrator each, in an order that NetBird accepts. A letter
replaces each @.
"""


def lettered(template: Record, letter: str) -> Record:
    found: Record = json.loads(json.dumps(template).replace("@", letter))
    return found


def _create(world: World, letter: str, name: str, template: Record) -> None:
    record = lettered(template, letter)
    if name == "members":
        _join(world, record["group"], record["peer"])
        return
    world[name].append(record)
    if name == "peers":
        _join(world, "All", record["id"])
    elif name.startswith("network_"):
        network = _by_id(world, "networks", f"network-{letter}")
        network[name.removeprefix("network_")].append(record["id"])


def _join(world: World, group: str, peer: str) -> None:
    found = _by_id(world, "groups", group)
    found["peers"].append({"id": peer, "name": peer.replace("-", " ")})
    found["peers_count"] = len(found["peers"])


def _by_id(world: World, name: str, id_: str) -> Record:
    return next(record for record in world[name] if record["id"] == id_)


_EMPTY = (
    *("peers", "accounts", "groups", "networks", "network_routers"),
    *("network_resources", "routes", "users", "policies", "posture_checks"),
    *("agent_providers", "agent_policies", "agent_budget_rules", "agent_guardrails"),
    "agent_consumption",
)


def _begin() -> World:
    world: World = {name: [] for name in _EMPTY}
    world["accounts"] = [{"id": "account", "settings": {}}]
    _create(world, "x", *CREATED[1])
    world["groups"][0].update(id="All", name="All")
    for created in CREATED:
        _create(world, "a", *created)
    return world


def _changes(world: World) -> Iterator[None]:
    """Change some of the first objects, one step at a time."""
    _by_id(world, "network_routers", "router-group-a")["peer_groups"] = ["group-b"]
    yield
    _by_id(world, "routes", "route-group-a")["peer_groups"] = ["group-b"]
    yield
    _by_id(world, "routes", "route-peer-a")["peer"] = "peer-b"
    yield
    _by_id(world, "policies", "policy-a")["source_posture_checks"] = ["check-b"]
    yield
    policy = _by_id(world, "agent_policies", "agents-a")
    policy["destination_provider_ids"] = ["provider-b"]
    yield


def _worlds() -> tuple[World, ...]:
    world = _begin()
    worlds = [deepcopy(world)]
    for created in CREATED:
        _create(world, "b", *created)
        worlds.append(deepcopy(world))
    worlds += [deepcopy(world) for _ in _changes(world)]
    return tuple(worlds)


WORLDS = _worlds()
"""The lists at first, and after each step. In reverse order objects are deleted."""


def body(world: World, name: str) -> bytes:
    return json.dumps(world[name]).encode()
