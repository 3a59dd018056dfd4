"""The recorded company: what its API says at any instant.

`company.json.gz` has the bodies of one instant, which `python -m simulation.company`
makes. Their dates move with the days, and peers lose their connection at random.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pkgutil import get_data
from random import Random
from typing import Any

import msgspec

from api_exporter.demo.go_json import Record, array, encode, rfc3339, xid

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

FULL = 680 * 30 * _DAY - 1
"""When these bodies were recorded: the last second of all windows, and of a day. It is
in 2025, so that no date of theirs moves.
"""


def consumption(rows: list[Record], _query: str, at: int) -> Iterator[Record]:
    """Move windows: what was the current one is so, as full as it is by now."""
    for row in rows:
        length = row["window_seconds"]
        recorded = int(datetime.fromisoformat(row["window_start_utc"]).timestamp())
        begin = recorded + (at // length - FULL // length) * length
        end = min(at, begin + length - 1)
        times = {"window_start_utc": rfc3339(begin), "updated_at": rfc3339(end, ".5")}
        yield _part(row, (end - begin) / (length - 1)) | times


def usage(buckets: list[Record], query: str, at: int) -> Iterator[Record]:
    """A bucket for each day that is asked for, none for a Sunday."""
    today = at // _DAY * _DAY
    first = today - (int(rfc3339(today)[8:10]) - 1) * _DAY
    for begin in range(first, today, _DAY) if "end_date=" in query else (today,):
        if begin // _DAY % 7 != 3:
            full = min(at - begin, _DAY) / _DAY
            yield _part(buckets[0], full) | {"period_start": rfc3339(begin)[:10]}


def denials(page: Record, _query: str, at: int) -> Record:
    """One every four minutes from the 42nd of an hour on: R&D's tokens are spent."""
    hours, rest = divmod(at % _DAY, _HOUR)
    number = 5 * hours + max(0, (rest - 42 * _MINUTE) // (4 * _MINUTE) + 1)
    row = page["data"][0] | {"timestamp": rfc3339(at // 240 * 240)}
    data = [row] if number else []
    return page | {"data": data, "total_records": number, "total_pages": number}


def _part(row: Record, share: float) -> Record:
    """Return a row with that share of its tokens and costs."""
    return {
        key: type(value)(value * share)
        if "tokens" in key or key.endswith("_usd")
        else value
        for key, value in row.items()
    }


RECORDED = datetime(2026, 11, 18, 8, 56, tzinfo=UTC).timestamp()
"""A working day's morning. All that is recorded holds for the day after it, too."""

FILE = "company.json.gz"

PEERS = "/api/peers"
GROUPS = "/api/groups"

_PLAYED: Mapping[str, Callable[[Any, str, int], Iterable[Record] | Record]] = {
    "/api/agent-network/consumption": consumption,
    "/api/agent-network/usage/overview": usage,
    "/api/agent-network/access-logs": denials,
}

_DATE = re.compile(rb'"(20(?:2[6-9]|3\d)-\d\d-\d\d)(?=T)')
"""A date that moves: earlier ones are history, and later ones mean never."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_COPIES = 4096
"""The first address of peers that are copies: all recorded ones are before it."""


@lru_cache(maxsize=1)
def bodies(days: int) -> Mapping[str, Any]:
    """Return the recorded bodies by path, moved by so many days."""

    def moved(match: re.Match[bytes]) -> bytes:
        day = date.fromisoformat(match[1].decode()) + timedelta(days)
        return f'"{day}'.encode()

    text = gzip.decompress(get_data("api_exporter.demo", FILE) or b"")
    found: dict[str, Any] = msgspec.json.decode(_DATE.sub(moved, text))
    return found


class RecordedNetwork:
    """The recorded company with any number of peers.

    Peers beyond the recorded ones are copies of these.

    Args:
        seed: decides when peers are offline.
    """

    def __init__(self, peers: int, seed: int = 0) -> None:
        self._seed = seed
        self._own: list[Record] = []
        members: dict[str, list[Record]] = {}
        recorded = bodies(0)[PEERS]
        for number in range(peers):
            copy, place = divmod(number, len(recorded))
            peer = recorded[place]
            self._own.append(_copied(peer, number, copy) if copy else {})
            peer = peer | self._own[-1]
            for group in peer["groups"] or ():
                member = {"id": peer["id"], "name": peer["name"]}
                members.setdefault(group["id"], []).append(member)
        self._members: dict[str, Record] = {
            id_: {"peers": msgspec.Raw(encode(of)), "peers_count": len(of)}
            for id_, of in members.items()
        }

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """Return a path's JSON in pieces, or None where there is no such path.

        `at` is in seconds since the epoch. A query may follow the path.
        """
        path, _, query = path.partition("?")
        found = bodies(int((at - RECORDED) // _DAY)).get(path)
        if found is None:
            return None
        if path == PEERS:
            found = self._peers(found, int(at))
        elif path == GROUPS:
            empty = {"peers": None, "peers_count": 0}
            found = (one | self._members.get(one["id"], empty) for one in found)
        elif path in _PLAYED:
            found = _PLAYED[path](found, query, int(at))
        if isinstance(found, dict):
            return iter([encode(found)])
        return array(map(encode, found))

    def _peers(self, recorded: list[Record], at: int) -> Iterator[Record]:
        for number, own in enumerate(self._own):
            peer = recorded[number % len(recorded)]
            seen = self._connection(number, at) if peer["connected"] else {}
            yield peer | own | seen

    def _connection(self, number: int, at: int) -> Record:
        """Return whether a peer is connected, and since when that is so."""
        chance = Random(f"{self._seed}:{number}")  # noqa: S311 - has to be repeatable
        period = chance.randint(_HOUR, 12 * _HOUR)
        offline = chance.randint(_MINUTE, 15 * _MINUTE)
        passed = (at - chance.randrange(period)) % period
        connected = passed >= offline
        changed = at - passed + offline * connected
        return {"connected": connected, "last_seen": rfc3339(changed)}


def _copied(peer: Record, number: int, copy: int) -> Record:
    """Return what a copy has of its own."""
    address = _COPIES + number
    return {
        "dns_label": f"{copy}-{peer['dns_label']}",
        "id": xid("d2o", number),
        "ip": f"100.{64 + (address >> 16)}.{address >> 8 & 255}.{address & 255}",
        "ipv6": f"fd00:4e42:1a2b::{address:x}",
        "name": f"{peer['name']} {copy}",
    }
