"""Fuzz target: what `--health --group` makes of a response of `/status.json`.

* Anything else than such a response is refused without an exception.
* The result is an exit status of a plugin and one printable line with one `|` at most.
"""

from api_exporter.checking.group_health import decode_status, judge

_ACCOUNT = b'{"groups":%b,"error":null,"last_refresh_age_seconds":%b}'
_GROUP = b'[{"id":"g","name":"All","peers":%b}]'

SEEDS = (
    b'{"accounts":[%b]}' % _ACCOUNT % (_GROUP % b'{"total":3,"offline":1}', b"7"),
    b'{"accounts":[%b]}' % _ACCOUNT % (_GROUP % b"null", b"null"),
    b'{"accounts":[%b]}' % _ACCOUNT % (b"null", b"null"),
    b'{"accounts":5}',
    b"[]",
)


def attempt(data: bytes) -> None:
    document = decode_status(data)
    if document is None:
        return
    status, line = judge(document, "All", 1, 2)
    assert status in range(4), status
    assert line.isprintable(), line
    assert line.count("|") <= 1, line
