"""An account with the changes of an administrator: its lists after each step."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

Record = dict[str, Any]
World = dict[str, list[Record]]

NOW = "2027-01-15T08:00:00Z"

_LIMITS = {
    "token_limit": {"enabled": True, "user_cap": 10, "group_cap": 100},
    "budget_limit": {},
}


def _by_id(world: World, name: str, id_: str) -> Record:
    return next(record for record in world[name] if record["id"] == id_)


def _drop(world: World, name: str, id_: str) -> None:
    world[name] = [record for record in world[name] if record["id"] != id_]


def _peer(world: World, letter: str) -> None:
    world["peers"].append(
        {
            "id": f"peer-{letter}",
            "name": f"peer {letter}",
            "connected": True,
            "version": "0.60.0",
            "last_seen": NOW,
        }
    )
    _join(world, "All", f"peer-{letter}")


def _join(world: World, group: str, peer: str) -> None:
    found = _by_id(world, "groups", group)
    found["peers"].append({"id": peer, "name": peer.replace("-", " ")})
    found["peers_count"] = len(found["peers"])


def _group(world: World, letter: str) -> None:
    world["groups"].append(
        {
            "id": f"group-{letter}",
            "name": f"group {letter}",
            "peers_count": 0,
            "resources_count": 0,
            "issued": "api",
            "peers": [],
        }
    )


def _fill(world: World, letter: str) -> None:
    _join(world, f"group-{letter}", f"peer-{letter}")


def _network(world: World, letter: str) -> None:
    network: Record = {"id": f"network-{letter}", "name": f"network {letter}"}
    world["networks"].append({**network, "routers": [], "resources": []})


def _router(world: World, letter: str, kind: str) -> None:
    id_ = f"router-{kind}-{letter}"
    router: Record = {"id": id_, "enabled": True, "metric": 9}
    if kind == "group":
        router["peer_groups"] = [f"group-{letter}"]
    else:
        router["peer"] = f"peer-{letter}"
    world["network_routers"].append(router)
    _by_id(world, "networks", f"network-{letter}")["routers"].append(id_)


def _resource(world: World, letter: str) -> None:
    id_ = f"resource-{letter}"
    world["network_resources"].append(
        {"id": id_, "name": f"resource {letter}", "type": "host", "enabled": True}
    )
    _by_id(world, "networks", f"network-{letter}")["resources"].append(id_)


def _route(world: World, letter: str, kind: str) -> None:
    id_ = f"route-{kind}-{letter}"
    route: Record = {"id": id_, "network_id": id_, "enabled": True, "network": id_}
    if kind == "group":
        route["peer_groups"] = [f"group-{letter}"]
    else:
        route["peer"] = f"peer-{letter}"
    world["routes"].append(route)


def _check(world: World, letter: str) -> None:
    world["posture_checks"].append(
        {
            "id": f"check-{letter}",
            "name": f"check {letter}",
            "checks": {"nb_version_check": {"min_version": "0.61.0"}},
        }
    )


def _policy(world: World, letter: str) -> None:
    side = [{"id": f"group-{letter}", "name": f"group {letter}"}]
    rule = {"id": f"rule-{letter}", "enabled": True}
    world["policies"].append(
        {
            "id": f"policy-{letter}",
            "name": f"policy {letter}",
            "enabled": True,
            "rules": [{**rule, "sources": side, "destinations": side}],
            "source_posture_checks": [f"check-{letter}"],
        }
    )


def _user(world: World, letter: str) -> None:
    world["users"].append({"id": f"user-{letter}", "role": "user"})


def _provider(world: World, letter: str) -> None:
    id_ = f"provider-{letter}"
    world["agent_providers"].append({"id": id_, "name": id_, "enabled": True})


def _guardrail(world: World, letter: str) -> None:
    world["agent_guardrails"].append({"id": f"guardrail-{letter}"})


def _agent_policy(world: World, letter: str) -> None:
    world["agent_policies"].append(
        {
            "id": f"agents-{letter}",
            "name": f"agents {letter}",
            "enabled": True,
            "source_groups": [f"group-{letter}"],
            "destination_provider_ids": [f"provider-{letter}"],
            "guardrail_ids": [f"guardrail-{letter}"],
            "limits": _LIMITS,
        }
    )


def _budget_rule(world: World, letter: str) -> None:
    world["agent_budget_rules"].append(
        {
            "id": f"budget-{letter}",
            "name": f"budget {letter}",
            "enabled": True,
            "target_groups": [f"group-{letter}"],
            "target_users": [f"user-{letter}", f"peer-{letter}"],
            "limits": _LIMITS,
        }
    )


_CREATE: tuple[Callable[[World, str], None], ...] = (
    _peer,
    _group,
    _fill,
    _network,
    lambda world, letter: _router(world, letter, "group"),
    lambda world, letter: _router(world, letter, "peer"),
    _resource,
    lambda world, letter: _route(world, letter, "group"),
    lambda world, letter: _route(world, letter, "peer"),
    _check,
    _policy,
    _user,
    _provider,
    _guardrail,
    _agent_policy,
    _budget_rule,
)
"""One request of the administrator each, in an order that NetBird accepts."""

_EMPTY = (
    "peers",
    "accounts",
    "groups",
    "networks",
    "network_routers",
    "network_resources",
    "routes",
    "users",
    "policies",
    "posture_checks",
    "agent_providers",
    "agent_policies",
    "agent_budget_rules",
    "agent_guardrails",
    "agent_consumption",
)


def _begin() -> World:
    world: World = {name: [] for name in _EMPTY}
    world["accounts"] = [{"id": "account", "settings": {}}]
    _group(world, "x")
    world["groups"][0].update(id="All", name="All")
    for step in _CREATE:
        step(world, "a")
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
    for step in _CREATE:
        step(world, "b")
        worlds.append(deepcopy(world))
    worlds += [deepcopy(world) for _ in _changes(world)]
    return tuple(worlds)


WORLDS = _worlds()
"""The lists at first, and after each step. In reverse order objects are deleted."""


def body(world: World, name: str) -> bytes:
    return json.dumps(world[name]).encode()
