"""The recorded company's Agent Network: what is used within the hour and the month."""

from collections.abc import Iterator
from datetime import datetime

from api_exporter.demo.go_json import Record, rfc3339

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
