"""The two logs that the upstream keeps of an account, and what is listed of them."""

import json
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Container
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs

from api_exporter.netbird.facts.personal import PERSONAL

LISTED = 40
"""Audit events that are listed still when they are known to be written. The upstream
lists ten thousand; so many would only take time."""

KEPT = 2 * 86400.0
"""Seconds for which rows of the access log are kept."""

LATE = 20.0
"""Seconds after which a row shows up, at most."""

EVENT_LATE = 3600.0
"""The same of an audit event: perhaps after the refresh that has those after it."""

Row = dict[str, Any]


def written(at: float, digits: int = 9) -> str:
    """A time as the upstream writes it."""
    whole, fraction = divmod(round(at * 10**9), 10**9)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}"[: 20 + digits] + "Z"


def public_event(event: Row, account: str, personal: frozenset[str]) -> Row:
    """The line of an event, as docs/events.md promises it for these events."""
    line = {"account": account, **event, "meta": {**event["meta"]}}
    about_person = event["activity_code"] != "peer.setupkey.add"
    for kind, record, field in (
        ("name", line, "initiator_name"),
        ("email", line, "initiator_email"),
        *([("name", line["meta"], "name")] if about_person else []),
    ):
        if kind not in personal:
            del record[field]
    if not personal >= set(PERSONAL):
        del line["brand_new"], line["meta"]["brand_new"]
    return line


def public_row(row: Row, account: str, personal: frozenset[str]) -> Row:
    """The line of a row, as docs/access-log.md promises it."""
    hidden = set() if "access_log" in personal else {"host", "path", "source_ip"}
    return {"account": account, **{k: row[k] for k in row.keys() - hidden}}


class EventLog:
    """The audit events.

    Attributes:
        told: how many there were ever; the number of the newest one.
        late: numbers of those that others with higher numbers came before.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._events: list[tuple[float, Row]] = []
        self._body = 0, b"[]"
        self.told = 0
        self.late: set[int] = set()

    def forget(self, number: int) -> None:
        """Those up to a number are not worth listing any more."""
        old = [e for _, e in self._events[:-LISTED] if int(e["id"]) <= number]
        del self._events[: len(old)]

    def add(self, many: int) -> None:
        """So many happen; some show up later."""
        for _ in range(many):
            self.told += 1
            event = {
                "id": str(self.told),
                "timestamp": written(self._now()),
                "activity": "Peer added",
                "activity_code": self._chance.choice(
                    ("peer.setupkey.add", "user.block", "brand.new.code")
                ),
                "initiator_id": "u",
                "initiator_name": f"zqname{self.told}",
                "initiator_email": f"zqmail{self.told}",
                "target_id": "t",
                "brand_new": "x",
                "meta": {"name": f"zqname{self.told}", "fqdn": "a.b", "brand_new": "x"},
            }
            wait = 0.0
            if self._chance.random() < 0.2:
                wait = self._chance.uniform(0.0, EVENT_LATE)
                self.late.add(self.told)
            self._events.append((self._now() + wait, event))

    def young(self, since: float) -> set[str]:
        """Events of which nobody can say yet whether they were read."""
        return {event["id"] for at, event in self._events if at > since}

    def rows(self, ids: Container[str]) -> dict[str, Row]:
        """By id, as far as they are listed."""
        return {event["id"]: event for _, event in self._events if event["id"] in ids}

    def body(self) -> bytes:
        now = self._now()
        events = [event for at, event in self._events if at <= now]
        key = hash(tuple(event["id"] for event in events))
        if self._body[0] != key:
            events.reverse()
            # Two that happen at once may stand in any order.
            if len(events) > 1 and self._chance.random() < 0.2:
                events[:2] = events[1::-1]
            self._body = key, json.dumps(events).encode()
        return self._body[1]


class RequestLog:
    """The access log of the reverse proxy.

    Attributes:
        told: how many rows there were ever.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._rows: list[tuple[str, float, str]] = []
        self.told = 0

    def add(self, many: int) -> None:
        """So many happen; some show up later."""
        now = self._now()
        for _ in range(many):
            self.told += 1
            late = self._chance.choice((0.0, 0.0, 0.0, self._chance.uniform(0, LATE)))
            at = written(now - self._chance.choice((0.0, 0.0, self._chance.random())))
            self._rows.append((at, now + late, f"row-{self.told}"))
        self._rows.sort()
        del self._rows[: bisect_left(self._rows, (written(now - KEPT),))]

    def young(self, since: float) -> set[str]:
        """Rows of which nobody can say yet whether they were read."""
        return {row[2] for row in self._rows if row[1] > since}

    def rows(self, ids: Container[str]) -> dict[str, Row]:
        """By id, as far as they are kept."""
        return {name: _row(name, at) for at, _, name in self._rows if name in ids}

    def body(self, query: str) -> bytes:
        """The page that is asked for, the oldest first."""
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        first = bisect_left(self._rows, (asked.get("start_date", ""),))
        now = self._now()
        there = [row for row in self._rows[first:] if row[1] <= now]
        size, page = int(asked["page_size"]), int(asked["page"])
        return json.dumps(
            {
                "data": [
                    _row(name, at)
                    for at, _, name in there[(page - 1) * size : page * size]
                ],
                "page": page,
                "page_size": size,
                "total_pages": -(-len(there) // size),
                "total_records": len(there),
            }
        ).encode()


def _row(name: str, at: str) -> Row:
    return {
        "id": name,
        "timestamp": at,
        "service_id": "s",
        "method": "GET",
        "status_code": 200,
        "host": "zqpath.example",
        "path": "/zqpath",
        "source_ip": "198.18.0.1",
        "duration_ms": 5,
    }


class Lines:
    """What stands in the exporter's file of a log, moved ones included.

    Args:
        file: its name; others begin with it.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._before: list[str] = []
        self._moved: list[Path] = []
        self._known: dict[Path, tuple[bytes, list[str]]] = {}

    def move(self, number: int) -> str:
        """As a rotation of logs does."""
        if not self.file.exists():
            return "there is none"
        to = self.file.with_name(f"{self.file.name}.{number}")
        self.file.rename(to)
        # Days of the simulation are a moment of the disk's clock, which has slow ticks.
        os.utime(to, ns=(time.time_ns(), time.time_ns()))
        if self.file in self._known:
            self._known[to] = self._known.pop(self.file)
        self._moved.append(to)
        if len(self._moved) > 2:
            first = self._moved.pop(0)
            self._read(first)
            self._before += self._known.pop(first)[1]
            first.unlink()
        return to.name

    def count(self) -> int:
        """Lines that were ever written."""
        there = [path for path in (*self._moved, self.file) if path.exists()]
        return len(self._before) + sum(p.read_bytes().count(b"\n") for p in there)

    def read(self) -> tuple[list[str], list[Row]]:
        """Ids of all lines, in their order; and the lines that are new."""
        there = [path for path in (*self._moved, self.file) if path.exists()]
        new = [line for path in there for line in self._read(path)]
        ids = (id_ for path in there for id_ in self._known[path][1])
        return [*self._before, *ids], new

    def _read(self, path: Path) -> list[Row]:
        """New lines. What follows the last line feed may be written just now."""
        before, ids = self._known.get(path, (b"", []))
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if not whole.startswith(before):
            before, ids = b"", []
        new = [json.loads(line) for line in whole[len(before) :].split(b"\n")[:-1]]
        self._known[path] = whole, [*ids, *(line["id"] for line in new)]
        return new
