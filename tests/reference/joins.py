"""Families that join lists of objects, except those of the Agent Network."""

import re
from fractions import Fraction

from tests.reference.fields import (
    Known,
    Record,
    distinct,
    flag,
    ids,
    instant,
    number,
    objects,
    own,
    part,
    text,
)
from tests.reference.page import Page, Settings, boolean

ROUTING = ("networks", "network_routers", "groups", "peers")

Release = tuple[int, int, int]


def has(known: Known, *resources: str) -> bool:
    return all(resource in known for resource in resources)


def named(records: list[Record]) -> dict[str, Record]:
    """Return records by id."""
    return {text(record, "id"): record for record in records}


def connected(known: Known, peers: set[str]) -> int:
    """Return the number of these peers that are connected."""
    return sum(
        flag(peer, "connected") for peer in known["peers"] if text(peer, "id") in peers
    )


def members(group: Record) -> set[str]:
    return {text(member, "id") for member in objects(group, "peers")}


def routing_peers(known: Known, router: Record) -> set[str]:
    """Return the existing peers behind a router or a route."""
    peers = {text(router, "peer")}
    for group in known["groups"]:
        if text(group, "id") in ids(router, "peer_groups"):
            peers |= members(group)
    return peers & set(named(known["peers"]))


def peers(page: Page, known: Known, settings: Settings) -> None:
    if not has(known, "peers", "accounts"):
        return
    for peer in known["peers"]:
        if _is_shown(known, settings, text(peer, "id")):
            end = _login_expiry(peer, known["accounts"])
            page.put(
                "peer_login_expiration_timestamp_seconds", end, **own("peer", peer)
            )


def _is_shown(known: Known, settings: Settings, id_: str) -> bool:
    """Return whether a peer may have series of its own."""
    return settings.detail is None or any(
        id_ in members(group)
        for group in known.get("groups", [])
        if {text(group, "id"), text(group, "name")} & settings.detail
    )


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


def users(page: Page, known: Known, _settings: Settings) -> None:
    """Put the access tokens of the exporter's own user."""
    if not has(known, "users", "access_tokens"):
        return
    current = min(text(u, "id") for u in known["users"] if flag(u, "is_current"))
    tokens = known["access_tokens"]
    for token in tokens:
        of = {**own("token", token), "user_id": current}
        page.time("access_token_expiration", token, "expiration_date", **of)
        page.time("access_token_last_used", token, "last_used", **of)
    used = [one for one in tokens if instant(one, "last_used")]
    if own_tokens := tokens if len(tokens) == 1 else used:
        token = max(own_tokens, key=lambda t: (instant(t, "last_used") or 0, t["id"]))
        of = {**own("token", token), "user_id": current}
        page.time(
            "api_exporter_access_token_expiration", token, "expiration_date", **of
        )


def groups(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "groups", "peers"):
        for group in known["groups"]:
            of = own("group", group)
            listed = members(group) & set(named(known["peers"]))
            there = connected(known, listed)
            page.put("group_peers_connected", there, **of)
            page.put("group_peers_offline", len(listed) - there, **of)


def policies(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "policies", "groups"):
        for policy in known["policies"]:
            empty = sum(
                _is_empty(known, objects(rule, side), part(rule, single))
                for rule in _enabled_rules(policy)
                for side, single in (
                    ("sources", "sourceResource"),
                    ("destinations", "destinationResource"),
                )
            )
            count = empty if flag(policy, "enabled") else 0
            page.put("policy_empty_sides", count, **own("policy", policy))
    if has(known, "posture_checks", "policies"):
        for check in known["posture_checks"]:
            _check(page, known, check)


def _enabled_rules(policy: Record) -> list[Record]:
    rules = distinct(objects(policy, "rules"))
    return [rule for rule in rules if flag(rule, "enabled")]


def _is_empty(known: Known, groups: list[Record], resource: Record) -> bool:
    """Return whether a side of a rule has neither peers nor resources."""
    if text(resource, "id"):
        return False
    listed = named(known["groups"])
    return not any(
        number(listed[id_], "peers_count") + number(listed[id_], "resources_count") > 0
        for id_ in (text(group, "id") for group in groups)
        if id_ in listed
    )


def _check(page: Page, known: Known, check: Record) -> None:
    id_, of = text(check, "id"), own("posture_check", check)
    users = [
        policy
        for policy in known["policies"]
        if flag(policy, "enabled") and id_ in ids(policy, "source_posture_checks")
    ]
    page.put("posture_check_policies", len(users), **of)
    minimum = part(part(check, "checks"), "nb_version_check")
    oldest = _release(text(minimum, "min_version"))
    if oldest is None or not has(known, "groups", "peers"):
        return
    sources = {
        text(group, "id")
        for policy in users
        for rule in _enabled_rules(policy)
        for group in objects(rule, "sources")
    }
    concerned: set[str] = set()
    for group in known["groups"]:
        if text(group, "id") in sources:
            concerned |= members(group)
    releases = (
        _release(text(peer, "version"))
        for peer in known["peers"]
        if text(peer, "id") in concerned
    )
    below = sum(release is not None and release < oldest for release in releases)
    page.put("posture_check_peers_below_min_version", below, **of)


def _release(version: str) -> Release | None:
    match = re.fullmatch(r"v?([0-9]{1,99})\.([0-9]{1,99})\.([0-9]{1,99})", version)
    return match and (int(match[1]), int(match[2]), int(match[3]))


def networks(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "networks"):
        for network in known["networks"]:
            _network(page, known, network)
        for resource in known.get("network_resources", []):
            _resource(page, known, resource)


def _network(page: Page, known: Known, network: Record) -> None:
    of = own("network", network)
    if has(known, "network_resources"):
        resources = named(known["network_resources"])
        listed = [resources[i] for i in ids(network, "resources") if i in resources]
        for half in (True, False):
            count = sum(flag(resource, "enabled") is half for resource in listed)
            page.put("network_resources", count, **of, enabled=boolean(half))
    if has(known, "network_routers"):
        routers = named(known["network_routers"])
        for router in ids(network, "routers"):
            if router in routers and _network_of(known, "routers", router) is network:
                ids_ = {"network_id": text(network, "id"), "router_id": router}
                enabled = flag(routers[router], "enabled")
                page.put("network_router_enabled", enabled, **ids_)
                metric = number(routers[router], "metric")
                page.put("network_router_metric", metric, **ids_)
    if has(known, *ROUTING):
        behind = _behind(known, network)
        page.put("network_routing_peers", len(behind), **of)
        page.put("network_routing_peers_connected", connected(known, behind), **of)


def _behind(known: Known, network: Record) -> set[str]:
    """Return the existing peers behind a network's enabled routers."""
    peers: set[str] = set()
    for router in known["network_routers"]:
        owner = _network_of(known, "routers", text(router, "id"))
        if owner is network and flag(router, "enabled"):
            peers |= routing_peers(known, router)
    return peers


def _network_of(known: Known, field: str, id_: str) -> Record | None:
    """Return the network that lists an object: the one with the greatest id."""
    listing = [network for network in known["networks"] if id_ in ids(network, field)]
    return max(listing, key=lambda network: text(network, "id"), default=None)


def _resource(page: Page, known: Known, resource: Record) -> None:
    of = own("network_resource", resource)
    network = _network_of(known, "resources", text(resource, "id"))
    page.put(
        "network_resource_info",
        1,
        **of,
        network_id=text(network, "id") if network else "",
        resource_type=text(resource, "type"),
        address=text(resource, "address"),
    )
    if network and has(known, *ROUTING):
        there = connected(known, _behind(known, network))
        page.put("network_resource_routing_peers_connected", there, **of)


def routes(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "routes", "groups", "peers"):
        for route in known["routes"]:
            if flag(route, "enabled"):
                of = {"route_id": text(route, "id")}
                of["network_id"] = text(route, "network_id")
                behind = routing_peers(known, route)
                there = connected(known, behind)
                page.put("route_routing_peers", len(behind), **of)
                page.put("route_routing_peers_connected", there, **of)
