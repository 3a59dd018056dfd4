"""A long JSON list in slices, encoded one element after the other."""

from msgspec import Struct
from msgspec.json import Encoder

from api_exporter.exposition.pages import FIRST_BYTES, PIECE_BYTES, Payload

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""The maximum bytes of a response: two ports of 100,000 peers in `/sd`."""


class ResponseTooLong(Exception):
    """A response longer than the limit."""


class JsonList:
    """A list that is being written; ResponseTooLong if it exceeds the limit."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes or MAX_RESPONSE_BYTES
        self._slices: list[bytes] = []
        self._buffer = bytearray()
        self._separator = b"[\n"
        self._length = 0
        self._encode = Encoder().encode_into

    def add(self, element: Struct) -> None:
        if len(self._buffer) >= (PIECE_BYTES if self._slices else FIRST_BYTES):
            self._cut()
        self._buffer += self._separator
        self._separator = b",\n"
        self._encode(element, self._buffer, -1)

    def end(self) -> Payload:
        self._buffer += b"[]\n" if self._separator == b"[\n" else b"\n]\n"
        self._cut()
        return Payload(tuple(self._slices), self._length)

    def _cut(self) -> None:
        self._slices.append(bytes(self._buffer))
        self._length += len(self._buffer)
        self._buffer.clear()
        if self._length > self._max_bytes:
            raise ResponseTooLong
