"""The two logs that the upstream keeps of an account, and what is listed of them."""

import json
from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs

LISTED = 40
"""Audit events that are listed still when they are known to be written. The upstream
lists ten thousand; so many would only take time."""

KEPT = 2 * 86400.0
"""Seconds for which rows of the access log are kept."""

LATE = 20.0
"""Seconds after which a row shows up, at most."""


def written(at: float, digits: int = 9) -> str:
    """A time as the upstream writes it."""
    whole, fraction = divmod(round(at * 10**9), 10**9)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}"[: 20 + digits] + "Z"


class EventLog:
    """The audit events.

    Attributes:
        told: how many there were ever; the number of the newest one.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._events: list[dict[str, Any]] = []
        self._body: bytes | None = None
        self.told = 0

    def forget(self, number: int) -> None:
        """Those up to a number are not worth listing any more."""
        old = [event for event in self._events[:-LISTED] if int(event["id"]) <= number]
        del self._events[: len(old)]
        self._body = None

    def add(self, many: int) -> None:
        """So many happen."""
        self._body = None
        for _ in range(many):
            self.told += 1
            self._events.append(
                {
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
                    "meta": {"name": f"zqname{self.told}", "fqdn": "a.b"},
                }
            )

    def young(self, since: float) -> set[str]:
        """Events of which nobody can say yet whether they were read."""
        return {e["id"] for e in self._events if e["timestamp"] > written(since)}

    def body(self) -> bytes:
        if self._body is None:
            events = self._events[::-1]
            # Two that happen at once may stand in any order.
            if len(events) > 1 and self._chance.random() < 0.2:
                events[:2] = events[1::-1]
            self._body = json.dumps(events).encode()
        return self._body


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
                    {
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
                    for at, _, name in there[(page - 1) * size : page * size]
                ],
                "page": page,
                "page_size": size,
                "total_pages": -(-len(there) // size),
                "total_records": len(there),
            }
        ).encode()


class Lines:
    """What stands in the exporter's file of a log, moved ones included.

    Args:
        file: its name; others begin with it.

    Attributes:
        ids: of all lines, in their order.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._before: list[str] = []
        self._moved: list[Path] = []

    def move(self, number: int) -> str:
        """As a rotation of logs does."""
        if not self.file.exists():
            return "there is none"
        to = self.file.with_name(f"{self.file.name}.{number}")
        self.file.rename(to)
        self._moved.append(to)
        if len(self._moved) > 2:
            self._before += _ids(self._moved[0])
            self._moved.pop(0).unlink()
        return to.name

    @property
    def ids(self) -> list[str]:
        there = (path for path in (*self._moved, self.file) if path.exists())
        return [*self._before, *(id_ for path in there for id_ in _ids(path))]


def _ids(path: Path) -> list[str]:
    """Of whole lines: what follows the last line feed may be written just now."""
    whole = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["id"] for line in whole]
