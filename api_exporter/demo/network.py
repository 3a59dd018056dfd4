"""The recorded company: the responses of its API at any time.

`python -m simulation.company` makes `company.json.gz`, the bodies of one instant. Dates
in them move forward once a day, and peers disconnect at random.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv6Address
from pkgutil import get_data
from random import Random
from typing import Any

import msgspec

from api_exporter.demo.go_json import Record, array, encode, rfc3339, xid

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

USAGE_RECORDED_AT = 680 * 30 * _DAY - 1
"""The time of recorded consumption and usage: the last second of a day and of all
windows. It is in 2025, so that `_DATE` does not match.
"""


def consumption(rows: list[Record], _query: str, at: int) -> Iterator[Record]:
    """Yield the windows, moved to a time; usage grows within the current window."""
    for row in rows:
        length = row["window_seconds"]
        recorded = int(datetime.fromisoformat(row["window_start_utc"]).timestamp())
        begin = recorded + (at // length - USAGE_RECORDED_AT // length) * length
        end = min(at, begin + length - 1)
        times = {"window_start_utc": rfc3339(begin), "updated_at": rfc3339(end, ".5")}
        yield _scaled(row, (end - begin) / (length - 1)) | times


def usage(buckets: list[Record], query: str, at: int) -> Iterator[Record]:
    """Yield a bucket for each requested day."""
    today = at // _DAY * _DAY
    first = today - (int(rfc3339(today)[8:10]) - 1) * _DAY
    for begin in range(first, today, _DAY) if "end_date=" in query else (today,):
        full = min(at - begin, _DAY) / _DAY
        yield _scaled(buckets[0], full) | {"period_start": rfc3339(begin)[:10]}


def denials(page: Record, _query: str, at: int) -> Record:
    """Return the denials: one every four minutes from minute 42 of each hour on.

    The group R&D has then used its tokens.
    """
    hours, rest = divmod(at % _DAY, _HOUR)
    number = 5 * hours + max(0, (rest - 42 * _MINUTE) // (4 * _MINUTE) + 1)
    row = page["data"][0] | {"timestamp": rfc3339(at // 240 * 240)}
    data = [row] if number else []
    return page | {"data": data, "total_records": number, "total_pages": number}


def _scaled(row: Record, share: float) -> Record:
    return {
        key: type(value)(value * share)
        if "tokens" in key or key.endswith("_usd")
        else value
        for key, value in row.items()
    }


RECORDED_AT = datetime(2026, 11, 18, 8, 56, tzinfo=UTC).timestamp()
"""The time of the recording, a working morning. Dates move at this time of a day."""

RECORDING_FILE = "company.json.gz"

PEERS_PATH = "/api/peers"
GROUPS_PATH = "/api/groups"

_LAST_GATEWAY = "gw-lab-1"
"""The other one of its network, gw-lab-2, is disconnected anyway."""

_MOVING: Mapping[str, Callable[[Any, str, int], Iterable[Record] | Record]] = {
    "/api/agent-network/consumption": consumption,
    "/api/agent-network/usage/overview": usage,
    "/api/agent-network/access-logs": denials,
}

_DATE = re.compile(rb'"(20(?:2[6-9]|3\d)-\d\d-\d\d)(?=T)')
"""Dates that move: earlier dates are history, later dates mean never."""

_FIRST_COPY_ADDRESS = 4096
"""The first address of copied peers; all recorded addresses are lower."""


_IPV6_NETWORK = IPv6Address("fd00:4e42:1a2b::")


@lru_cache(maxsize=1)
def bodies(days: int) -> Mapping[str, Any]:
    """Return the recorded bodies by path, with dates moved by some days."""

    def moved(match: re.Match[bytes]) -> bytes:
        day = date.fromisoformat(match[1].decode()) + timedelta(days)
        return f'"{day}'.encode()

    text = gzip.decompress(get_data("api_exporter.demo", RECORDING_FILE) or b"")
    found: dict[str, Any] = msgspec.json.decode(_DATE.sub(moved, text))
    return found


class RecordedNetwork:
    """The recorded company with any number of peers, the additional ones as copies.

    Args:
        seed: decides when peers are offline.
    """

    def __init__(self, peers: int, seed: int) -> None:
        self._seed = seed
        self._changes: list[Record] = []
        members: dict[str, list[Record]] = {}
        recorded = bodies(0)[PEERS_PATH]
        for number in range(peers):
            copy, place = divmod(number, len(recorded))
            peer = recorded[place]
            self._changes.append(_copy_fields(peer, number, copy) if copy else {})
            peer = peer | self._changes[-1]
            for group in peer["groups"] or ():
                member = {"id": peer["id"], "name": peer["name"]}
                members.setdefault(group["id"], []).append(member)
        self._members: dict[str, Record] = {
            id_: {"peers": msgspec.Raw(encode(peers)), "peers_count": len(peers)}
            for id_, peers in members.items()
        }

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """Return a path's JSON; see `SimulatedAccount.body`."""
        path, _, query = path.partition("?")
        found = bodies(int((at - RECORDED_AT) // _DAY)).get(path)
        if found is None:
            return None
        if path == PEERS_PATH:
            found = self._peers(found, int(at))
        elif path == GROUPS_PATH:
            empty = {"peers": None, "peers_count": 0}
            found = (one | self._members.get(one["id"], empty) for one in found)
        elif path in _MOVING:
            found = _MOVING[path](found, query, int(at))
        if isinstance(found, dict):
            return iter([encode(found)])
        return array(map(encode, found))

    def _peers(self, recorded: list[Record], at: int) -> Iterator[Record]:
        for number, changes in enumerate(self._changes):
            peer = recorded[number % len(recorded)]
            connection = self._connection(number, at) if peer["connected"] else {}
            yield peer | changes | connection | _login(peer, at)

    def _connection(self, number: int, at: int) -> Record:
        chance = Random(f"{self._seed}:{number}")  # noqa: S311 - has to be repeatable
        period = chance.randint(_HOUR, 12 * _HOUR)
        offline = chance.randint(_MINUTE, 15 * _MINUTE)
        passed = (at - chance.randrange(period)) % period
        connected = passed >= offline
        changed = at - passed + offline * connected
        return {"connected": connected, "last_seen": rfc3339(changed)}


def _login(peer: Record, at: int) -> Record:
    """Return the next login of a connected peer, as soon as the last would expire."""
    if not (peer["connected"] and peer["login_expiration_enabled"]):
        return {}
    text = peer["last_login"]
    last = datetime.fromisoformat(text)
    if at < last.timestamp() + _DAY:
        return {}
    return {"last_login": f"{(last + timedelta(1)).date()}{text[10:]}"}


def without_gateway(peers: Iterable[bytes], since: int) -> Iterator[bytes]:
    """Return the peers after the last gateway of a network has disconnected."""
    records: list[Record] = msgspec.json.decode(b"".join(peers))
    lost = {"connected": False, "last_seen": rfc3339(since)}
    return array(
        encode(one | lost if one["name"] == _LAST_GATEWAY else one) for one in records
    )


def _copy_fields(peer: Record, number: int, copy: int) -> Record:
    address = _FIRST_COPY_ADDRESS + number
    return {
        "dns_label": f"{copy}-{peer['dns_label']}",
        "id": xid("d2o", number),
        "ip": f"100.{64 + (address >> 16)}.{address >> 8 & 255}.{address & 255}",
        "ipv6": str(_IPV6_NETWORK + address),
        "name": f"{peer['name']} {copy}",
    }
