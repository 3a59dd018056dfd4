"""Compressed answers. Two bytes say how long the pieces are, and what is damaged.

* What is delivered is what zlib makes of the same bytes, member for member.
* It ends once, in good order or with UpstreamError, and nothing follows.
* No step delivers more than 256 KiB, and no timer is left.
"""

import zlib

from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone

from api_exporter.ports import UpstreamError
from api_exporter.upstream.gzip_agent import Gunzip

GZIP = 16 + zlib.MAX_WBITS
STEP = 256 * 1024
MOST_STEPS = 10_000


def packed(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=GZIP)
    return packer.compress(text) + packer.flush()


SEEDS = (
    b"\x01\x00[]",
    b"\x03\x05[1, 2, 3]",
    b"\x00\xff" + packed(b"[]"),
    b"\x07\xff" + packed(b"[") + packed(b"]"),
    b"\x10\xff" + packed(b"x" * 1_000_000),
    b"\x20\xff" + packed(b"[]") + b"rest",
)


class Reader(Protocol):
    """What the layer above gets."""

    def __init__(self) -> None:
        self.plain = b""
        self.ends: list[Failure] = []

    def dataReceived(self, data: bytes) -> None:
        assert not self.ends, "bytes behind the end"
        assert len(data) <= STEP, "more than a step"
        self.plain += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.ends.append(reason)


def reference(body: bytes) -> bytes | None:
    """All members, one behind the other; None where one is damaged or not whole."""
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
    size, place, body = data[0] + 1, data[1], data[2:]
    if place < 255:  # such bytes are packed first, and at most one bit is wrong then
        body = packed(body)
        if place and place < len(body):
            body = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
    clock, reader = Clock(), Reader()
    transport = StringTransport()
    unpacker = Gunzip(reader, clock)
    unpacker.makeConnection(transport)
    for start in range(0, len(body), size):
        unpacker.dataReceived(body[start : start + size])
        if start % 3 == 0:
            clock.advance(0)
    unpacker.connectionLost(Failure(ResponseDone()))
    for _ in range(MOST_STEPS):
        if not clock.getDelayedCalls():
            break
        clock.advance(0)
    assert not clock.getDelayedCalls(), "a timer is left"
    [end] = reader.ends
    wanted = reference(body)
    if end.check(ResponseDone):
        assert reader.plain == wanted, (reader.plain, wanted)
    else:
        assert end.check(UpstreamError), end
        assert wanted is None, end
