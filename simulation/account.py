"""One simulated account: its records, which change, are deleted and come back."""

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from api_exporter.netbird.resources import ACCESS_LOG, BY_NAME, CURRENT_USER, RESOURCES
from simulation.company.network import SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from simulation.logs import EventLog, RequestLog, written
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
OF_THE_TIME = frozenset({"agent_consumption", "agent_usage", "agent_denials"})
"""Resources of the Agent Network whose records depend on the current time."""

_TIME = re.compile(r"[1-9]\d{3}-\d\d-\d\dT")
_DAYS = (0, 0, 1, 3, 7, 14)
"""Days from now to a new time. A time that expires soon causes a finding."""

_HOSTILE = tuple(words({}))
_VALUES: tuple[object, ...] = (None, True, 0, -1, 2**53 + 1, 1.5, "", [], {}, [None])

PATHS = {
    resource.path.format(current_user=EXPORTER_ID): resource.name
    for resource in RESOURCES
} | {BY_NAME[name].path: name for name in (ACCESS_LOG, CURRENT_USER)}
"""The name of the resource behind each path."""


class Account:
    """The records of one account.

    Args:
        seed: the seed of all its changes.
        truth: returns the time of its own clock, in seconds since the epoch.
        agents: whether it has an Agent Network.

    Attributes:
        removed: ids of deleted peers.
        delivered: the last body of each resource that was sent completely.
    """

    def __init__(
        self,
        name: str,
        seed: str,
        now: Callable[[], float],
        truth: Callable[[], float],
        *,
        agents: bool,
    ) -> None:
        self.name = name
        self._chance = chance = Random(f"{seed}/{name}")
        self._now = now
        self.events = EventLog(Random(f"{seed}/{name}/events"), truth)
        self.requests = RequestLog(Random(f"{seed}/{name}/requests"), now)
        self.delivered: dict[str, bytes] = {}
        self._agents = agents
        self._number = 0
        self._odd: list[tuple[str, int, Record]] = []
        self._gone: dict[str, list[Record]] = {}
        self._usual = chance.randint(5, 60)
        self.resize(self._usual)

    def resize(self, peers: int) -> None:
        """Create all records again, with another number of peers."""
        self._network = SimulatedNetwork(peers, seed=self._chance.randrange(1000))
        self._records: dict[str, Any] = {}
        self._bodies: dict[str, bytes] = {}
        self._gone.clear()
        self._odd.clear()
        for path, name in PATHS.items():
            if name in {"events", ACCESS_LOG, CURRENT_USER} or name in OF_THE_TIME:
                continue
            pieces = self._network.body(f"/{path}", self._now()) or ()
            found = json.loads(b"".join(pieces))
            if name == AGENTS and not self._agents:
                found = []
            for record in found if isinstance(found, list) else ():
                self._mark(name, record)
            self._records[name] = found

    def bodies(self) -> Iterator[bytes]:
        yield from (*self._bodies.values(), *self.delivered.values())
        yield self.events.body()

    def body(self, name: str, query: str) -> bytes:
        """Return the body that the NetBird API sends for a resource now."""
        if name == "events":
            return self.events.body()
        if name == ACCESS_LOG:
            return self.requests.body(query)
        if name in OF_THE_TIME:
            path = next(path for path, other in PATHS.items() if other == name)
            return b"".join(self._network.body(f"/{path}?{query}", self._now()) or ())
        if name not in self._bodies:
            self._bodies[name] = encode(self._records[name])
        return self._bodies[name]

    @property
    def removed(self) -> set[str]:
        there = {str(r.get("id")) for r in self._records["peers"] if r}
        return {record["id"] for record in self._gone.get("peers", ())} - there

    def change(self) -> str:
        """Make one change by chance. Return its description."""
        if self._chance.random() < 0.15:
            return self._turn()
        names = sorted(self._records)
        name = "peers" if self._chance.random() < 0.4 else self._chance.choice(names)
        records = self._records[name]
        self._bodies.pop(name, None)
        if self._odd and self._chance.random() < 0.5:
            return self._mend()
        if not isinstance(records, list):
            return self._set(name, records)
        gone = self._gone.setdefault(name, [])
        acts: list[tuple[int, Callable[[], str]]] = [
            (2, lambda: self._leave(name, records, gone)),
            (2, lambda: self._come_back(name, records, gone)),
            (1, lambda: self._join(name, records)),
            (4, lambda: self._set(name, self._chance.choice(records))),
            (1, lambda: self._shuffle(name, records)),
            (1, lambda: self._spoil(name, records)),
            (1, lambda: self._double(name, records)),
        ]
        if not records:
            return self._come_back(name, records, gone)
        weights, choices = zip(*acts, strict=True)
        [act] = self._chance.choices(choices, weights)
        return f"{act()} of {name}"

    def tenfold(self) -> str:
        self.resize(10 * self._usual)
        return "grows tenfold"

    def usual(self) -> str:
        self.resize(self._usual)
        return "is as large as usual"

    def vanish(self) -> str:
        """Remove all records of its lists, except users."""
        for name, records in self._records.items():
            if isinstance(records, list) and name != "users":
                records.clear()
        self._bodies.clear()
        self._odd.clear()
        return "has nothing"

    def _leave(self, name: str, records: list[Record], gone: list[Record]) -> str:
        record = records.pop(self._chance.randrange(len(records)))
        if "id" in record and len(gone) < 100:
            gone.append(record)
        self._odd = [odd for odd in self._odd if odd[0] != name]
        return "one leaves"

    def _come_back(self, name: str, records: list[Record], gone: list[Record]) -> str:
        if gone:
            record = gone.pop(self._chance.randrange(len(gone)))
            records.insert(self._chance.randint(0, len(records)), record)
        self._odd = [odd for odd in self._odd if odd[0] != name]
        return "one comes back"

    def _join(self, name: str, records: list[Record]) -> str:
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
        self._odd = [odd for odd in self._odd if odd[0] != name]
        self._chance.shuffle(records)
        return "another order"

    def _double(self, name: str, records: list[Record]) -> str:
        """Insert a changed record with another one's id. The last of both counts."""
        record = deepcopy(self._chance.choice(records))
        self._odd = [odd for odd in self._odd if odd[0] != name]
        records.insert(self._chance.randint(0, len(records)), record)
        self._set(name, record)
        return "one is there twice"

    def _turn(self) -> str:
        """Change a value that many findings depend on. These are the current user, the
        length of a login, the providers of the Agent Network, and the expiry of a setup
        key.
        """
        agents = (AGENTS,) if self._agents else ()
        name = self._chance.choice(("users", "accounts", "setup_keys", *agents))
        records, gone = self._records[name], self._gone.setdefault(name, [])
        self._bodies.pop(name, None)
        self._odd = [odd for odd in self._odd if odd[0] != name]
        if name == AGENTS:
            records[:], gone[:] = gone, records
        elif name == "users":
            current = self._chance.choice((EXPORTER_ID, "CgZhZG1pbjASBWxvY2Fs"))
            for record in records:
                record["is_current"] = record.get("id") == current
        elif name == "accounts":
            for record in records:
                if isinstance(settings := record.get("settings"), dict):
                    lasting = self._chance.choice((3600, 86400, 10 * 86400))
                    settings["peer_login_expiration"] = lasting
        elif records:
            now, soon = self._now(), self._chance.uniform(0.0, 3600.0)
            self._chance.choice(records).update(
                type="reusable",
                state="valid",
                revoked=False,
                last_used=written(now),
                expires=written(now + 86400.0 + soon),
            )
        return f"something important of {name}"

    def _set(self, name: str, record: object) -> str:
        fields = [
            (where, key)
            for where, key in places(record)
            if key not in {"id", "is_current"} and key not in _PERSONAL.get(name, {})
        ]
        if not fields:
            return "nothing changes"
        where, key = self._chance.choice(fields)
        value = where[key]  # type: ignore[index]
        where[key] = self._other(value)  # type: ignore[index]
        return "a field changes"

    def _other(self, value: object) -> object:
        chance = self._chance
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return chance.choice((0, 1, value + 1, chance.randint(0, 10**6)))
        if isinstance(value, str) and _TIME.match(value):
            days = chance.choice(_DAYS) * chance.choice((-1, 1))
            return written(self._now() + days * 86400.0 + chance.uniform(-3600, 3600))
        if isinstance(value, str) and value[4:5] != "-":  # a time without its end
            return chance.choice((value, f"{value[:50]}x", value[:-1], "Other"))
        return value

    def _spoil(self, name: str, records: list[Record]) -> str:
        number = self._chance.randrange(len(records))
        record = records[number]
        fields = [w for w in places(record) if w[1] != "is_current"]
        if fields:
            self._odd.append((name, number, deepcopy(record)))
            where, key = self._chance.choice(fields)
            hostile = self._chance.random() < 0.5
            where[key] = self._chance.choice(  # type: ignore[index]
                _HOSTILE if hostile else deepcopy(_VALUES)
            )
        return "an odd one"

    def _mend(self) -> str:
        name, number, record = self._odd.pop()
        records = self._records[name]
        self._bodies.pop(name, None)
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
