"""The access log as NetBird pages it: equal times, late rows, and inserts."""

import json
from bisect import bisect_left, insort
from collections.abc import Iterable
from urllib.parse import parse_qs

from api_exporter.logs.listing import (
    NANOSECONDS_PER_SECOND,
    LogRow,
    Page,
    decode_page,
    format_time,
    nanoseconds,
)

START = nanoseconds("2026-11-21T19:00:00Z")

SERVICE = "dc1diodqmd2oq13d8l5g"


def row(number: int, time: int, **fields: object) -> dict[str, object]:
    """Return one row; ids have no order."""
    found: dict[str, object] = {
        "bytes_download": 8476,
        "bytes_upload": 92,
        "city_name": "Berlin",
        "country_code": "DE",
        "duration_ms": 73,
        "host": "web.eu.proxy.test",
        "id": f"{number * 7919 % 1_000_003:07}x{number}",
        "method": "GET",
        "path": f"/burst/{number}",
        "protocol": "http",
        "service_id": SERVICE,
        "source_ip": "203.0.113.212",
        "status_code": 200,
        "subdivision_code": "BE",
        "timestamp": format_time(time),
    }
    return found | fields


def number(id_: str) -> int:
    return int(id_.partition("x")[2])


class Table:
    """The rows of the log, sorted by time and then by insertion."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self.rows: list[tuple[int, int, str]] = []
        self.queries: list[str] = []
        for one in numbers:
            self.add(one)

    def add(self, one: int, time: int | None = None, **fields: object) -> None:
        """Add a row, by default in the second of its number."""
        time = START + one * NANOSECONDS_PER_SECOND if time is None else time
        text = json.dumps(row(one, time, **fields), sort_keys=True)
        insort(self.rows, (time, len(self.rows), text))

    def answer(self, query: str) -> bytes:
        """Return the response; NetBird ignores unknown and invalid filters."""
        self.queries.append(query)
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        since = nanoseconds(asked.get("start_date", ""))
        size = min(100, int(asked.get("page_size", "50")))
        page = max(1, int(asked.get("page", "1")))
        first, end = bisect_left(self.rows, (since, -1, "")), len(self.rows)
        places = range(first, end)
        if asked.get("sort_order") != "asc":
            places = places[::-1]
        some = places[(page - 1) * size : page * size]
        data = ",".join(self.rows[place][2] for place in some)
        pages = -(-len(places) // size)
        return (
            f'{{"data":[{data}],"page":{page},"page_size":{size},'
            f'"total_pages":{pages},"total_records":{len(places)}}}\n'
        ).encode()

    def page(self, query: str) -> Page:
        """Return the response, decoded."""
        return decode_page(self.answer(query))


def requests(numbers: Iterable[int]) -> list[LogRow]:
    return Table(numbers).page("page_size=100&sort_order=asc").rows
