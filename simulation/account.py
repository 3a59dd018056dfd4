"""One simulated account: its records, which change, are deleted and come back."""

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from api_exporter.netbird.resources import ACCESS_LOG, CURRENT_USER
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES
from simulation.company.network import SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from simulation.logs import EventLog, RequestLog, rfc3339
from tests.reference.hostile import encode, places, words

Record = dict[str, Any]

MARKS = {
    "hostname": "zqhost",
    "city": "zqcity",
    "serial_number": "zqserial",
    "connection_ip": "198.18.",
    "name": "zqname",
    "email": "zqmail",
    "access_log": "zqpath",
}
"""The prefix of the personal data of each kind. Nothing else begins with it."""

SECRET = "zqsecret"
"""The value of the secrets that only the NetBird API holds."""

_PERSONAL = {
    "peers": {
        "hostname": "hostname",
        "city_name": "city",
        "serial_number": "serial_number",
        "connection_ip": "connection_ip",
    },
    "users": {"name": "name", "email": "email"},
    "user_invites": {"name": "name", "email": "email"},
}

AGENTS = "agent_providers"
TIME_DEPENDENT = frozenset({"agent_consumption", "agent_usage", "agent_denials"})
"""Resources of the Agent Network whose records depend on the current time."""

_TIME = re.compile(r"[1-9]\d{3}-\d\d-\d\dT")
_DAYS_AWAY = (0, 0, 1, 3, 7, 14)
"""Days from now to a new time. A time that expires soon causes a finding."""

_HOSTILE = tuple(words({}))
_VALUES: tuple[object, ...] = (None, True, 0, -1, 2**53 + 1, 1.5, "", [], {}, [None])

PATHS = {
    resource.path.format(current_user=EXPORTER_ID): resource.name
    for resource in RESOURCES
} | {RESOURCE_BY_NAME[name].path: name for name in (ACCESS_LOG, CURRENT_USER)}
"""The name of the resource behind each path."""


class Account:
    """The records of one account.

    Args:
        seed: the seed of all its changes.
        clock: returns the time of its own clock, in seconds since the epoch.
        agents: whether it has an Agent Network.

    Attributes:
        records: the records of each resource.
        changes: the number of changes of each resource.
        delivered: the last body of each resource that was sent completely, and when it
            was made, in seconds of its own clock; None if it was damaged.
    """

    def __init__(
        self,
        name: str,
        seed: str,
        now: Callable[[], float],
        clock: Callable[[], float],
        *,
        agents: bool,
    ) -> None:
        self.name = name
        self._chance = chance = Random(f"{seed}/{name}")
        self._now = now
        self.clock = clock
        self.changes: dict[str, int] = {}
        self.events = EventLog(Random(f"{seed}/{name}/events"), clock)
        self.requests = RequestLog(Random(f"{seed}/{name}/requests"), now)
        self.delivered: dict[str, tuple[bytes, float | None]] = {}
        self._agents = agents
        self._clock_moves_peers = Random(f"{seed}/{name}/clock").random() < 0.5
        self._number = 0
        self._spoiled: list[tuple[str, int, Record]] = []
        self._deleted: dict[str, list[Record]] = {}
        self._usual_peers = chance.randint(5, 60)
        self.resize(self._usual_peers)

    def resize(self, peers: int) -> None:
        """Create all records again, with another number of peers."""
        self._network = SimulatedNetwork(peers, seed=self._chance.randrange(1000))
        self.records: dict[str, Any] = {}
        self._bodies: dict[str, bytes] = {}
        self._deleted.clear()
        self._spoiled.clear()
        for path, name in PATHS.items():
            if name in {"events", ACCESS_LOG, CURRENT_USER} or name in TIME_DEPENDENT:
                continue
            pieces = self._network.body(f"/{path}", self._now()) or ()
            found = json.loads(b"".join(pieces))
            if name == AGENTS and not self._agents:
                found = []
            for record in found if isinstance(found, list) else ():
                self._mark(name, record)
            self.records[name] = found
        self.note_change(*self.records)

    def log(self, kind: str) -> EventLog | RequestLog:
        return self.events if kind == "events" else self.requests

    def note_change(self, *names: str) -> None:
        """Note that the records of these resources have changed."""
        for name in names:
            self._bodies.pop(name, None)
            self.changes[name] = self.changes.get(name, 0) + 1

    def listed(self, name: str) -> bytes:
        """Return the records of a resource as they are now, as a body."""
        return encode(self.records[name])

    def bodies(self) -> Iterator[bytes]:
        yield from self._bodies.values()
        yield from (body for body, _ in self.delivered.values())
        yield self.events.body()

    def body(self, name: str, query: str) -> bytes:
        """Return the body that the NetBird API sends for a resource now."""
        if name == "events":
            return self.events.body()
        if name == ACCESS_LOG:
            return self.requests.body(query)
        if name in TIME_DEPENDENT:
            path = next(path for path, other in PATHS.items() if other == name)
            return b"".join(self._network.body(f"/{path}?{query}", self._now()) or ())
        if name == "peers" and self._clock_moves_peers:
            self._update_last_seen()
        if name not in self._bodies:
            self._bodies[name] = self.listed(name)
        return self._bodies[name]

    def _update_last_seen(self) -> None:
        """Set `last_seen` of connected peers to now, as a later NetBird may do."""
        for peer in filter(None, self.records["peers"]):
            if peer.get("connected") is True and "last_seen" in peer:
                peer["last_seen"] = rfc3339(self._now())
        self._bodies.pop("peers", None)

    def change(self) -> str:
        """Make one change by chance. Return its description."""
        if self._chance.random() < 0.15:
            return self._change_important()
        names = sorted(self.records)
        name = "peers" if self._chance.random() < 0.4 else self._chance.choice(names)
        records = self.records[name]
        self.note_change(name)
        if self._spoiled and self._chance.random() < 0.5:
            return self._repair_one()
        if not isinstance(records, list):
            return self._change_field(name, records)
        deleted = self._deleted.setdefault(name, [])
        actions: list[tuple[int, Callable[[], str]]] = [
            (2, lambda: self._delete(name, records, deleted)),
            (2, lambda: self._restore(name, records, deleted)),
            (1, lambda: self._add_one(name, records)),
            (4, lambda: self._change_field(name, self._chance.choice(records))),
            (1, lambda: self._shuffle(name, records)),
            (1, lambda: self._spoil_one(name, records)),
            (1, lambda: self._duplicate_one(name, records)),
        ]
        if not records:
            return self._restore(name, records, deleted)
        weights, choices = zip(*actions, strict=True)
        [action] = self._chance.choices(choices, weights)
        return f"{action()} of {name}"

    def grow(self) -> str:
        self.resize(10 * self._usual_peers)
        return "grows tenfold"

    def restore_size(self) -> str:
        self.resize(self._usual_peers)
        return "is as large as usual"

    def clear(self) -> str:
        """Remove all records of its lists, except users."""
        for name, records in self.records.items():
            if isinstance(records, list) and name != "users":
                records.clear()
        self.note_change(*self.records)
        self._spoiled.clear()
        return "has nothing"

    def _delete(self, name: str, records: list[Record], deleted: list[Record]) -> str:
        record = records.pop(self._chance.randrange(len(records)))
        if "id" in record and len(deleted) < 100:
            deleted.append(record)
        self._spoiled = [spoiled for spoiled in self._spoiled if spoiled[0] != name]
        return "one leaves"

    def _restore(self, name: str, records: list[Record], deleted: list[Record]) -> str:
        if deleted:
            record = deleted.pop(self._chance.randrange(len(deleted)))
            records.insert(self._chance.randint(0, len(records)), record)
        self._spoiled = [spoiled for spoiled in self._spoiled if spoiled[0] != name]
        return "one comes back"

    def _add_one(self, name: str, records: list[Record]) -> str:
        if len(records) > 200:
            return "none joins"
        record = deepcopy(self._chance.choice(records))
        if "id" in record:
            self._number += 1
            record["id"] = f"new-{self._number}"
            record["name"] = f"new {self._number}"
            self._mark(name, record)
        records.append(record)
        return "one joins"

    def _shuffle(self, name: str, records: list[Record]) -> str:
        self._spoiled = [spoiled for spoiled in self._spoiled if spoiled[0] != name]
        self._chance.shuffle(records)
        return "another order"

    def _duplicate_one(self, name: str, records: list[Record]) -> str:
        """Insert a changed record with another one's id. The last of both counts."""
        record = deepcopy(self._chance.choice(records))
        self._spoiled = [spoiled for spoiled in self._spoiled if spoiled[0] != name]
        records.insert(self._chance.randint(0, len(records)), record)
        self._change_field(name, record)
        return "one is there twice"

    def _change_important(self) -> str:
        """Change a value that many findings depend on. These are the current user, the
        length of a login, the providers of the Agent Network, and the expiry of a setup
        key.
        """
        agents = (AGENTS,) if self._agents else ()
        name = self._chance.choice(("users", "accounts", "setup_keys", *agents))
        records, deleted = self.records[name], self._deleted.setdefault(name, [])
        self.note_change(name)
        self._spoiled = [spoiled for spoiled in self._spoiled if spoiled[0] != name]
        if name == AGENTS:
            records[:], deleted[:] = deleted, records
        elif name == "users":
            current = self._chance.choice((EXPORTER_ID, "CgZhZG1pbjASBWxvY2Fs"))
            for record in records:
                record["is_current"] = record.get("id") == current
        elif name == "accounts":
            for record in records:
                if isinstance(settings := record.get("settings"), dict):
                    seconds = self._chance.choice((3600, 86400, 10 * 86400))
                    settings["peer_login_expiration"] = seconds
        elif records:
            now, soon = self._now(), self._chance.uniform(0.0, 3600.0)
            self._chance.choice(records).update(
                type="reusable",
                state="valid",
                revoked=False,
                last_used=rfc3339(now),
                expires=rfc3339(now + 86400.0 + soon),
            )
        return f"something important of {name}"

    def _change_field(self, name: str, record: object) -> str:
        fields = [
            (where, key)
            for where, key in places(record)
            if key not in {"id", "is_current"} and key not in _PERSONAL.get(name, {})
        ]
        if not fields:
            return "nothing changes"
        where, key = self._chance.choice(fields)
        value = where[key]  # type: ignore[index]
        where[key] = self._other_value(value)  # type: ignore[index]
        return "a field changes"

    def _other_value(self, value: object) -> object:
        chance = self._chance
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return chance.choice((0, 1, value + 1, chance.randint(0, 10**6)))
        if isinstance(value, str) and _TIME.match(value):
            days = chance.choice(_DAYS_AWAY) * chance.choice((-1, 1))
            return rfc3339(self._now() + days * 86400.0 + chance.uniform(-3600, 3600))
        if isinstance(value, str) and value[4:5] != "-":  # a time without its end
            return chance.choice((value, f"{value[:50]}x", value[:-1], "Other"))
        return value

    def _spoil_one(self, name: str, records: list[Record]) -> str:
        number = self._chance.randrange(len(records))
        record = records[number]
        fields = [w for w in places(record) if w[1] != "is_current"]
        if fields:
            self._spoiled.append((name, number, deepcopy(record)))
            where, key = self._chance.choice(fields)
            hostile = self._chance.random() < 0.5
            where[key] = self._chance.choice(  # type: ignore[index]
                _HOSTILE if hostile else deepcopy(_VALUES)
            )
        return "an odd one"

    def _repair_one(self) -> str:
        name, number, record = self._spoiled.pop()
        records = self.records[name]
        self.note_change(name)
        if number < len(records):
            records[number] = record
        return f"an odd one is mended of {name}"

    def _mark(self, name: str, record: Record) -> None:
        self._number += 1
        for field, kind in _PERSONAL.get(name, {}).items():
            if field in record:
                record[field] = f"{MARKS[kind]}{self._number % 256}.{self._number}"
        if "key" in record and name == "setup_keys":
            record["key"] = SECRET
