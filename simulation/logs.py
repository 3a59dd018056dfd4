"""The two logs that the NetBird API keeps of an account, and their lists."""

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

from api_exporter.netbird.records import PERSONAL

MIN_LISTED = 40
"""Audit events that remain listed after the exporter has written them. NetBird lists
ten thousand, which would only take time."""

KEPT_SECONDS = 2 * 86400.0
"""Seconds for which rows of the access log are kept."""

MAX_DELAY = 20.0
"""The longest delay of a row of the access log, in seconds."""

MAX_EVENT_DELAY = 3600.0
"""The same of an audit event. A refresh may list later events before it."""

Row = dict[str, Any]


def rfc3339(at: float, digits: int = 9) -> str:
    """Format a time as the NetBird API does."""
    whole, fraction = divmod(round(at * 10**9), 10**9)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}"[: 20 + digits] + "Z"


def public_event(event: Row, account: str, personal: frozenset[str]) -> Row:
    """Return the line of an event as docs/logs.md promises it."""
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
    """Return the line of a row as docs/logs.md promises it."""
    hidden = set() if "access_log" in personal else {"host", "path", "source_ip"}
    return {"account": account, **{k: row[k] for k in row.keys() - hidden}}


class EventLog:
    """The audit events of an account.

    Attributes:
        last: the number of all events so far, which is also the id of the newest one.
        delayed: numbers of events that are listed after events with higher numbers.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._events: list[tuple[float, Row]] = []
        self._body = 0, b"[]"
        self.last = 0
        self.delayed: set[int] = set()

    def every_id(self) -> set[str]:
        return {str(number) for number in range(1, self.last + 1)}

    def unlisted(self) -> set[str]:
        """Return ids of events that are not listed any more."""
        return self.every_id() - {event["id"] for _, event in self._events}

    def forget_up_to(self, number: int) -> None:
        """Stop listing old events with numbers up to this one."""
        old = [e for _, e in self._events[:-MIN_LISTED] if int(e["id"]) <= number]
        del self._events[: len(old)]

    def add(self, count: int) -> None:
        """Add this number of events. Some are listed later."""
        for _ in range(count):
            self.last += 1
            event = {
                "id": str(self.last),
                "timestamp": rfc3339(self._now()),
                "activity": "Peer added",
                "activity_code": self._chance.choice(
                    ("peer.setupkey.add", "user.block", "brand.new.code")
                ),
                "initiator_id": "u",
                "initiator_name": f"zqname{self.last}",
                "initiator_email": f"zqmail{self.last}",
                "target_id": "t",
                "brand_new": "x",
                "meta": {"name": f"zqname{self.last}", "fqdn": "a.b", "brand_new": "x"},
            }
            wait = 0.0
            if self._chance.random() < 0.2:
                wait = self._chance.uniform(0.0, MAX_EVENT_DELAY)
                self.delayed.add(self.last)
            self._events.append((self._now() + wait, event))

    def recent(self, since: float) -> set[str]:
        """Return ids of events so recent that the exporter may not have read them."""
        return {event["id"] for at, event in self._events if at > since}

    def rows(self, ids: Container[str]) -> dict[str, Row]:
        """Return listed events by id."""
        return {event["id"]: event for _, event in self._events if event["id"] in ids}

    def body(self) -> bytes:
        now = self._now()
        events = [event for at, event in self._events if at <= now]
        key = hash(tuple(event["id"] for event in events))
        if self._body[0] != key:
            events.reverse()
            # Events of the same instant may have any order.
            if len(events) > 1 and self._chance.random() < 0.2:
                events[:2] = events[1::-1]
            self._body = key, json.dumps(events).encode()
        return self._body[1]


class RequestLog:
    """The access log of the reverse proxy.

    Attributes:
        last: the number of all rows so far.
    """

    def __init__(self, chance: Random, now: Callable[[], float]) -> None:
        self._chance = chance
        self._now = now
        self._rows: list[tuple[str, float, str]] = []
        self.last = 0

    def add(self, count: int) -> None:
        """Add this number of rows. Some are listed later."""
        now = self._now()
        for _ in range(count):
            self.last += 1
            delay = self._chance.choice(
                (0.0, 0.0, 0.0, self._chance.uniform(0, MAX_DELAY))
            )
            at = rfc3339(now - self._chance.choice((0.0, 0.0, self._chance.random())))
            self._rows.append((at, now + delay, f"row-{self.last}"))
        self._rows.sort()
        del self._rows[: bisect_left(self._rows, (rfc3339(now - KEPT_SECONDS),))]

    def every_id(self) -> set[str]:
        return {f"row-{number}" for number in range(1, self.last + 1)}

    def unlisted(self) -> set[str]:
        """Return ids of rows that are not kept any more."""
        return self.every_id() - {name for _, _, name in self._rows}

    def recent(self, since: float) -> set[str]:
        """Return ids of rows so recent that the exporter may not have read them."""
        return {row[2] for row in self._rows if row[1] > since}

    def rows(self, ids: Container[str]) -> dict[str, Row]:
        """Return kept rows by id."""
        return {name: _row(name, at) for at, _, name in self._rows if name in ids}

    def body(self, query: str) -> bytes:
        """Return the requested page, oldest rows first."""
        parameters = {name: values[-1] for name, values in parse_qs(query).items()}
        first = bisect_left(self._rows, (parameters.get("start_date", ""),))
        now = self._now()
        listed = [row for row in self._rows[first:] if row[1] <= now]
        size, page = int(parameters["page_size"]), int(parameters["page"])
        return json.dumps(
            {
                "data": [
                    _row(name, at)
                    for at, _, name in listed[(page - 1) * size : page * size]
                ],
                "page": page,
                "page_size": size,
                "total_pages": -(-len(listed) // size),
                "total_records": len(listed),
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


class LogFile:
    """The lines of the exporter's log file, rotated files included.

    Args:
        file: the path of the log; rotated files have a suffix.

    Attributes:
        excused: ids that need no line: they were not listed when the log moved here.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.excused: set[str] = set()
        self._removed_ids: list[str] = []
        self._rotated: list[Path] = []
        self._contents: dict[Path, tuple[bytes, list[str]]] = {}

    def rotate(self, number: int) -> str:
        """Rename the file as a log rotation does. Return the new name."""
        if not self.file.exists():
            return "there is none"
        target = self.file.with_name(f"{self.file.name}.{number}")
        self.file.rename(target)
        # The simulated days are seconds of the disk's clock, which ticks slowly.
        os.utime(target, ns=(time.time_ns(), time.time_ns()))
        if self.file in self._contents:
            self._contents[target] = self._contents.pop(self.file)
        self._rotated.append(target)
        if len(self._rotated) > 2:
            first = self._rotated.pop(0)
            self._read(first)
            self._removed_ids += self._contents.pop(first)[1]
            first.unlink()
        return target.name

    def count(self) -> int:
        """Return the number of lines ever written."""
        files = [path for path in (*self._rotated, self.file) if path.exists()]
        return len(self._removed_ids) + sum(p.read_bytes().count(b"\n") for p in files)

    def has_newest_line(self) -> bool:
        """Return whether no line of a rotated file is newer than those of the file."""
        newest = [
            max((_place(line) for line in lines), default=("", 0, ""))
            for path in (*self._rotated, self.file)
            if path.exists()
            for lines in [path.read_bytes().split(b"\n")[:-1]]
        ]
        return self.file.exists() and newest[-1] == max(newest)

    def read(self) -> tuple[list[str], list[Row]]:
        """Return the ids of all lines in order, and the new lines."""
        files = [path for path in (*self._rotated, self.file) if path.exists()]
        new = [line for path in files for line in self._read(path)]
        ids = (id_ for path in files for id_ in self._contents[path][1])
        return [*self._removed_ids, *ids], new

    def _read(self, path: Path) -> list[Row]:
        """Return new lines. The text after the last line feed may be incomplete."""
        before, ids = self._contents.get(path, (b"", []))
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if not whole.startswith(before):
            before, ids = b"", []
        new = [json.loads(line) for line in whole[len(before) :].split(b"\n")[:-1]]
        self._contents[path] = whole, [*ids, *(line["id"] for line in new)]
        return new


def _place(line: bytes) -> tuple[str, int, str]:
    """Return the place of a line among all: ids are numbers that grow."""
    row = json.loads(line)
    return row["timestamp"], len(row["id"]), row["id"]
