"""The two logs that the upstream keeps of an account, and what is listed of them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import parse_qs

LISTED = 300
"""Audit events that are kept: fewer than the upstream keeps, but for days."""

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
        dropped: the newest one that is no longer listed.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._events: list[dict[str, Any]] = []
        self._body: bytes | None = None
        self.told = 0

    @property
    def dropped(self) -> int:
        return self.told - len(self._events)

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
        del self._events[:-LISTED]

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
        rows: those that are kept: the id, when it was, when it shows up.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self.rows: list[tuple[float, float, str]] = []
        self.told = 0

    def add(self, many: int) -> None:
        """So many happen."""
        now = self._now()
        for _ in range(many):
            self.told += 1
            late = self._chance.choice((0.0, 0.0, 0.0, self._chance.uniform(0, LATE)))
            at = now - self._chance.choice((0.0, 0.0, self._chance.uniform(0, 1)))
            self.rows.append((at, at + late, f"row-{self.told}"))
        self.rows.sort()
        while self.rows and self.rows[0][0] < now - KEPT:
            del self.rows[0]

    def body(self, query: str) -> bytes:
        """The page that is asked for, the oldest first."""
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        now, since = self._now(), asked.get("start_date", "")
        # As texts: a float has too few digits.
        there = [row for row in self.rows if row[1] <= now and written(row[0]) >= since]
        size, page = int(asked["page_size"]), int(asked["page"])
        return json.dumps(
            {
                "data": [
                    {
                        "id": name,
                        "timestamp": written(at),
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
