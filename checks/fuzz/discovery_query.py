"""Fuzz target: the query of `/sd`.

* Only ValueError is raised, and it is one line.
* A parsed query that is written out has the same meaning.
* The order of parameters and their repetition change nothing.
"""

from urllib.parse import urlencode

from twisted.web.http import parse_qs

from api_exporter.web.discovery import MAX_PORTS, parse_query
from api_exporter.web.peer_table import Query

SEEDS = (
    b"port=9100",
    b"port=9100&port=80&group=servers&group=All&address=dns",
    b"port=65535&address=ipv6&group=%ff%C3%A9",
    b"port=65536&gruop=x",
    b"port=1;port=2&account=a",
    b"port=" + b"&port=".join(b"%d" % n for n in range(1, 18)),
)


def parsed(arguments: dict[bytes, list[bytes]]) -> Query | None:
    try:
        return parse_query(arguments, ("account",))
    except ValueError as error:
        assert str(error).isprintable(), error
        return None


def attempt(data: bytes) -> None:
    try:
        arguments = parse_qs(data, keep_blank_values=True)
    except ValueError:  # Twisted refuses a request with too many fields.
        return
    found = parsed(arguments)
    reordered = dict(reversed([(k, v[::-1] * 2) for k, v in arguments.items()]))
    if arguments.get(b"address"):
        reordered[b"address"] = arguments[b"address"]
    assert parsed(reordered) == found, (reordered, found)
    if found is None:
        return
    assert 0 < len(found.ports) <= MAX_PORTS
    assert all(0 < port < 65536 for port in found.ports)
    written = urlencode(
        [
            *(("port", str(port)) for port in found.ports),
            *(("group", group) for group in found.groups),
            ("address", found.address_kind),
        ]
    )
    assert parsed(parse_qs(written.encode())) == found, written
