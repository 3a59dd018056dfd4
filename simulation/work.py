"""The work of administrators and machines, one request to the NetBird API at a time.

A job is a generator: each step changes lists, as one request does, and yields the names
of the changed lists. Most of NetBird's requests change one list; one that removes an
object removes it from the objects that have it, too.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from simulation.logs import rfc3339
from tests.administrator import CREATED, Record, lettered

Lists = dict[str, Any]
Steps = Iterator[Sequence[str]]

_NEEDS = {
    "members": ("peer", "group"),
    "network_routers": ("network", "group", "peer"),
    "network_resources": ("network",),
    "routes": ("group", "peer"),
    "policies": ("group", "check"),
    "agent_policies": ("group", "provider", "guardrail"),
    "agent_budget_rules": ("group", "user", "peer"),
}
"""The kinds of objects that must exist before an object of a list."""

_KINDS = {
    "peers": "peer",
    "groups": "group",
    "networks": "network",
    "posture_checks": "check",
    "users": "user",
    "agent_providers": "provider",
    "agent_guardrails": "guardrail",
}

_PAUSES = (0.0, 0.02, 1.0, 3.0, 9.0)
"""The most seconds between two steps, by chance."""

ENROLMENTS = 30.0
"""Seconds between two machines that enrol."""


class Job(Struct):
    """A job under way.

    Attributes:
        steps: what is left of it.
        pause: the most seconds between two steps.
        is_regular: whether the pauses are all as long as that.
    """

    kind: str
    steps: Steps
    pause: float
    is_regular: bool = False


class Administrator:
    """Works on the lists of one account.

    Args:
        lists: by resource, as they are now.
        now: returns seconds since the epoch.

    Attributes:
        teams: the numbers of the teams that exist: each has one object of each kind.
        kinds: the last job of each team.
    """

    def __init__(self, lists: Callable[[], Lists], now: Callable[[], float]) -> None:
        self._lists = lists
        self._now = now
        self._made = 0
        self.teams: list[str] = []
        self.kinds: dict[str, str] = {}

    def begin(self, chance: Random) -> Job:
        """Return a job that chance has chosen."""
        kinds: dict[str, Callable[[Random, str], Steps]] = {
            "created": self._create,
            "machines enrol": self._enrol,
        }
        if self.teams:
            kinds |= {
                "deleted": self._delete,
                "router moved": self._move_router,
                "resource moved": self._move_resource,
                "check replaced": self._replace_check,
                "group replaced": self._replace_group,
                "swapped": self._swap,
                "machine replaced": self._replace_machine,
                "outage": self._outage,
            }
        names = [*kinds]
        weights = [1 if name == "machines enrol" else 4 for name in names]
        [kind] = chance.choices(names, weights)
        if kind == "deleted" and len(self.teams) < 3:
            kind = "created"
        team = self._new() if kind == "created" else ""
        team = team or (chance.choice(self.teams) if self.teams else self._new())
        self.kinds[team] = kind
        steps = kinds[kind](chance, team)
        if kind == "machines enrol":
            return Job(kind, steps, ENROLMENTS, is_regular=True)
        return Job(kind, steps, chance.choice(_PAUSES))

    def _new(self) -> str:
        self._made += 1
        return f"team{self._made}"

    # Steps

    def _add(self, name: str, record: Record) -> Sequence[str]:
        """Create an object, which also stands in its network or in the group All."""
        if name == "members":
            return self._join(record["group"], record["peer"])
        self._lists()[name].append(record)
        if name == "peers":
            return name, *self._join("All", record["id"])
        if name.startswith("network_"):
            team = record["id"].rpartition("-")[2]
            for network in self._found("networks", f"network-{team}"):
                kind = name.removeprefix("network_")
                network[kind] = [*(network.get(kind) or ()), record["id"]]
            return name, "networks"
        return (name,)

    def _remove(self, name: str, id_: str) -> Sequence[str]:
        """Delete an object, also from groups and networks."""
        records = self._lists()[name]
        records[:] = [record for record in records if record.get("id") != id_]
        if name == "peers":
            for group in self._lists()["groups"]:
                self._leave(group, id_)
            return name, "groups"
        if name.startswith("network_"):
            kind = name.removeprefix("network_")
            for network in self._lists()["networks"]:
                if isinstance(ids := network.get(kind), list) and id_ in ids:
                    ids.remove(id_)
            return name, "networks"
        return (name,)

    def _join(self, group: str, *peers: str) -> Sequence[str]:
        for found in self._found("groups", group):
            members = found["peers"] if isinstance(found.get("peers"), list) else []
            new = ({"id": peer, "name": peer} for peer in peers)
            found["peers"] = [*members, *new]
            found["peers_count"] = len(found["peers"])
        return ("groups",)

    def _leave(self, group: Record, peer: str) -> Sequence[str]:
        if isinstance(members := group.get("peers"), list):
            members[:] = [m for m in members if _id(m) != peer]
            group["peers_count"] = len(members)
        return ("groups",)

    def _edit(self, name: str, id_: str, **fields: object) -> Sequence[str]:
        for record in self._found(name, id_):
            record.update(fields)
        return (name,)

    def _found(self, name: str, id_: str) -> list[Record]:
        """Return the object with this id; none if it was deleted by chance."""
        records = self._lists()[name]
        if id_ == "All":
            return [record for record in records if record.get("name") == id_][:1]
        return [record for record in records if record.get("id") == id_][:1]

    # Jobs

    def _create(self, chance: Random, team: str) -> Steps:
        """Create all objects of a team in one of the orders that NetBird accepts."""
        left = [*CREATED]
        if not self._lists().get("agent_providers"):
            left = [entry for entry in left if not entry[0].startswith("agent")]
        self.teams.append(team)
        missing = {_KINDS[name] for name, _ in left if name in _KINDS}
        while left:
            ready = [e for e in left if missing.isdisjoint(_NEEDS.get(e[0], ()))]
            left.remove(entry := chance.choice(ready))
            name, template = entry
            missing.discard(_KINDS.get(name, ""))
            yield self._add(name, lettered(template, team))

    def _delete(self, chance: Random, team: str) -> Steps:
        """Delete them; what another object needs is deleted after it."""
        self.teams.remove(team)
        users = [entry for entry in CREATED if entry[0] in _NEEDS]
        needed = [entry for entry in CREATED if entry[0] in _KINDS]
        chance.shuffle(users)
        chance.shuffle(needed)
        for name, template in (*users, *needed):
            record = lettered(template, team)
            if name == "members":
                for group in self._found("groups", record["group"]):
                    yield self._leave(group, record["peer"])
            elif name in self._lists():
                yield self._remove(name, record["id"])

    def _enrol(self, chance: Random, team: str) -> Steps:
        """Machines enrol every half minute, then they all leave."""
        new = [f"{team}-machine-{n}" for n in range(chance.randint(5, 30))]
        for one in new:
            yield self._enrolled(one)
        for one in new:
            yield self._remove("peers", one)

    def _enrolled(self, id_: str, *groups: str) -> Sequence[str]:
        peer = {"id": id_, "name": id_, "connected": True, "version": "0.60.0"}
        peer |= {"last_seen": rfc3339(self._now()), "ephemeral": True}
        for group in groups:
            self._join(group, id_)
        return self._add("peers", peer)

    def _move_router(self, chance: Random, team: str) -> Steps:
        """Another peer becomes the router, then the first one is switched off."""
        other = chance.choice(self.teams)
        name, id_ = chance.choice(
            (
                ("network_routers", f"router-peer-{team}"),
                ("routes", f"route-peer-{team}"),
            )
        )
        yield self._edit(name, id_, peer=f"peer-{other}")
        if other != team:
            yield self._switch(f"peer-{team}", on=False)
            yield self._edit(name, id_, peer=f"peer-{team}")
            yield self._switch(f"peer-{team}", on=True)

    def _move_resource(self, chance: Random, team: str) -> Steps:
        """A resource moves to a new group, and so does the policy."""
        new, side = f"new-group-{team}", [{"id": f"group-{team}", "name": team}]
        there = [{"id": new, "name": new}]
        resource = ("network_resources", f"resource-{team}")

        def placed(*groups: str) -> Sequence[str]:
            for group in (f"group-{team}", new):
                self._edit("groups", group, resources_count=int(group in groups))
            named = [{"id": group, "name": group} for group in groups]
            self._edit(*resource, groups=named)
            return "network_resources", "groups"

        def ruled(sides: list[Record]) -> Sequence[str]:
            for policy in self._found("policies", f"policy-{team}"):
                if isinstance(rules := policy.get("rules"), list):
                    for rule in filter(_is_object, rules):
                        rule.update(sources=sides, destinations=sides)
            return ("policies",)

        yield placed(f"group-{team}")
        for group in self._found("groups", f"group-{team}"):
            yield self._leave(group, f"peer-{team}")
        record = {"id": new, "name": new, "issued": "api", "peers": []}
        yield self._add("groups", {**record, "peers_count": 0, "resources_count": 0})
        yield placed(f"group-{team}", new)
        yield ruled(there)
        yield placed(new)
        if chance.random() < 0.5:
            yield placed(f"group-{team}", new)
            yield ruled(side)
            yield placed(f"group-{team}")
        yield ruled(side)
        yield self._join(f"group-{team}", f"peer-{team}")
        yield self._remove("groups", new)
        yield placed()

    def _replace_check(self, chance: Random, team: str) -> Steps:
        """A policy uses another posture check, and the first one is deleted."""
        check, new = f"check-{team}", f"new-check-{team}"
        for old, one in ((check, new), (new, check)):
            yield self._add("posture_checks", {"id": one, "name": one, "checks": {}})
            both = [old, one] if chance.random() < 0.5 else [one]
            for used in (both, [one]):
                yield self._edit(
                    "policies", f"policy-{team}", source_posture_checks=used
                )
            yield self._remove("posture_checks", old)

    def _replace_group(self, _chance: Random, team: str) -> Steps:
        """Routers and routes use another group, and the first one is emptied."""
        group, new = f"group-{team}", f"new-group-{team}"
        record = {"id": new, "name": new, "issued": "api", "peers": []}
        yield self._add("groups", {**record, "peers_count": 0, "resources_count": 0})
        for old, one in ((group, new), (new, group)):
            yield self._join(one, f"peer-{team}")
            yield self._edit(
                "network_routers", f"router-group-{team}", peer_groups=[one]
            )
            yield self._edit("routes", f"route-group-{team}", peer_groups=[one])
            for found in self._found("groups", old):
                yield self._leave(found, f"peer-{team}")
        yield self._remove("groups", new)

    def _swap(self, chance: Random, team: str) -> Steps:
        """Two teams swap their routers, or the members of their groups."""
        other = chance.choice(self.teams)
        swaps = ((team, other), (other, team))
        if chance.random() < 0.5:
            for one, two in swaps:
                for name, id_ in (
                    ("network_routers", f"router-peer-{one}"),
                    ("routes", f"route-peer-{one}"),
                ):
                    yield self._edit(name, id_, peer=f"peer-{two}")
            return
        for one, two in swaps:
            yield self._join(f"group-{one}", f"peer-{two}")
        for one, _ in swaps:
            for group in self._found("groups", f"group-{one}"):
                yield self._leave(group, f"peer-{one}")

    def _replace_machine(self, chance: Random, team: str) -> Steps:
        """A machine enrols again as another peer, before or after it was deleted."""
        peer, group = f"peer-{team}", f"group-{team}"
        if chance.random() < 0.5:
            yield self._enrolled(f"new-{peer}", group)
            yield self._edit(
                "network_routers", f"router-peer-{team}", peer=f"new-{peer}"
            )
            yield self._remove("peers", peer)
        else:
            yield self._remove("peers", peer)
            yield self._enrolled(f"new-{peer}", group)
        yield self._enrolled(peer, group)
        yield self._edit("network_routers", f"router-peer-{team}", peer=peer)
        yield self._remove("peers", f"new-{peer}")

    def _outage(self, chance: Random, team: str) -> Steps:
        """The peer of a team is offline for some minutes."""
        yield self._switch(f"peer-{team}", on=False)
        for _ in range(chance.randint(0, 60)):
            yield ()
        yield self._switch(f"peer-{team}", on=True)

    def _switch(self, peer: str, *, on: bool) -> Sequence[str]:
        now = rfc3339(self._now())
        return self._edit("peers", peer, connected=on, last_seen=now)


def _id(member: object) -> object:
    return member.get("id") if isinstance(member, dict) else None


def _is_object(rule: object) -> bool:
    return isinstance(rule, dict)
