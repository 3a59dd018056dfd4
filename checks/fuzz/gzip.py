"""Fuzz target: compressed bodies. The first byte selects the damaged byte.

* The result is that of zlib for the same bytes, member by member.
* Or it is UpstreamError, if zlib finds damage or the limit is exceeded.
"""

import zlib

from api_exporter.netbird.bodies import unpack
from api_exporter.ports import ResponseBody, UpstreamError

GZIP = 16 + zlib.MAX_WBITS
LIMIT = 2_000_000


def packed(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=GZIP)
    return packer.compress(text) + packer.flush()


SEEDS = (
    b"\x00[]",
    b"\x05[1, 2, 3]",
    b"\xff" + packed(b"[]"),
    b"\xff" + packed(b"[") + packed(b"]"),
    b"\xff" + packed(b"x" * 1_000_000),
    b"\xff" + packed(b"x" * 3_000_000),
    b"\xff" + packed(b"[]") + b"rest",
)


def reference(body: bytes) -> bytes | None:
    """Return all members joined, or None if one is damaged or incomplete.

    A body without any byte has no member.
    """
    if not body:
        return b""
    plain, rest = b"", body
    while True:
        member = zlib.decompressobj(GZIP)
        try:
            plain += member.decompress(rest)
        except zlib.error:
            return None
        if not member.eof:
            return None
        rest = member.unused_data
        if not rest:
            return plain


def attempt(data: bytes) -> None:
    place, body = data[0], data[1:]
    if place < 255:  # compress the bytes, and change at most one bit
        body = packed(body)
        if place and place < len(body):
            body = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
    wanted = reference(body)
    try:
        found = unpack(ResponseBody(body, packed=True, limit=LIMIT))
    except UpstreamError:
        assert wanted is None or len(wanted) > LIMIT, wanted
    else:
        assert found == wanted, (found, wanted)
