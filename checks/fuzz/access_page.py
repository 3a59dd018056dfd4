"""Fuzz target: pages of the reverse proxy's access log.

* Only UpstreamError is raised.
* Each line is one line, and names no path, host or address unless it may.
* A row that was read is not new again.
"""

from api_exporter.logs.listing import NANOSECONDS_PER_SECOND
from api_exporter.logs.position import Position
from api_exporter.ports import UpstreamError
from tests.bodies import NOON, recorded

NOW = int(NOON * NANOSECONDS_PER_SECOND)
FIELDS = b'"id":"a","timestamp":"2026-05-22T12:07:00Z"'

SEEDS = (
    *(recorded(name).get("api/events/proxy", b"{}")[:3000] for name in ("recorded",)),
    b'{"data":[{%b,"path":"c4nary","source_ip":"c4nary","host":"c4nary"}],"page":1,'
    b'"page_size":100,"total_pages":1,"total_records":1}' % FIELDS,
    b'{"data":[{%b},{%b}],"page":1,"page_size":1,"total_records":3}' % (FIELDS, FIELDS),
    b'{"data":null}',
    b'{"data":[{"id":"\\ud800","timestamp":"x"}],"total_records":-1}',
)


def attempt(data: bytes) -> None:
    position = Position(start=0)
    try:
        listing = position.decode(data)
    except UpstreamError:
        return
    new = position.new(listing, NOW)
    for row in new.rows:
        line = position.line(row, "acme", frozenset())
        assert line.count(b"\n") == (line[-1:] == b"\n"), line
        assert b"c4nary" not in line or b"c4nary" in row.id.encode(), line
    after = position.with_([row.key for row in new.rows])
    again = after.new(listing, NOW).rows
    assert not again, again
