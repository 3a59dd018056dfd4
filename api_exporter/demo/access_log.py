"""The simulated access log of the reverse proxy: one request a second."""

import json
from collections.abc import Sequence
from datetime import datetime
from math import ceil
from urllib.parse import parse_qs

from api_exporter.demo.go_json import rfc3339, xid

ACCESS_LOG_PATH = "/api/events/proxy"

_RETENTION = 3600
"""Seconds for which rows are kept; NetBird keeps them for seven days."""

_MAX_PAGE_SIZE = 100

_SERVICE_SHARES = (0, 0, 0, 0, 1, 1, 2)
"""Indices of services by chance: the first one gets four of seven requests."""


def page(query: str, services: Sequence[str], now: float) -> bytes:
    """Return the page for a query string.

    Args:
        services: the ids of services, the busiest first.
    """
    filters = {name: values[-1] for name, values in parse_qs(query).items()}
    since = max(now - _RETENTION, _time(filters.get("start_date", "")))
    first = ceil(since)
    numbers = range(first, int(now) + 1 if services else first)
    if filters.get("sort_order") != "asc":
        numbers = numbers[::-1]
    size = min(_MAX_PAGE_SIZE, _number(filters.get("page_size", "")) or 50)
    number = _number(filters.get("page", "")) or 1
    return json.dumps(
        {
            "data": [
                _row(one, services)
                for one in numbers[(number - 1) * size : number * size]
            ],
            "page": number,
            "page_size": size,
            "total_pages": -(-len(numbers) // size),
            "total_records": len(numbers),
        },
        separators=(",", ":"),
    ).encode()


def _row(number: int, services: Sequence[str]) -> dict[str, object]:
    """Return the request of a second since the epoch."""
    chance = number * 2654435761 % 2**32
    status = {0: 502, 1: 401, 2: 404}.get(chance % 17, 200)
    row: dict[str, object] = {
        "bytes_download": 500 + chance % 60_000,
        "bytes_upload": chance % 900,
        "country_code": ("DE", "FR", "NL")[chance % 3],
        "duration_ms": 3 + (chance >> 8) % 60 + (chance % 41 == 0) * 900,
        "host": "app.example.test",
        "id": xid("d2i", number),
        "method": "GET",
        "path": f"/{chance % 9}",
        "protocol": "http",
        "service_id": services[min(_SERVICE_SHARES[chance % 7], len(services) - 1)],
        "source_ip": f"203.0.113.{chance % 200}",
        "status_code": status,
        "timestamp": rfc3339(number),
    }
    if status != 200:
        refused = status == 401
        row["reason"] = "Authentication failed" if refused else "Request failed"
    return row


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
