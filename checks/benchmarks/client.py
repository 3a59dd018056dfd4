"""A client with little overhead: one connection, one buffer, no decoding."""

import re
import socket
import time

from checks.benchmarks.processes import Program

MAX_WAIT = 60.0
"""Seconds until a program must answer."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Client:
    """A persistent connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self._buffer = bytearray(1 << 20)
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def time(self, path: str, *headers: str) -> tuple[float, int]:
        """Return seconds from the request to the last byte, and the body's length."""
        request = _request(path, headers)
        begin = time.perf_counter()
        self._socket.sendall(request)
        length, rest = self._head()
        left = length - len(rest)
        while left:
            got = self._socket.recv_into(self._buffer, min(left, len(self._buffer)))
            if not got:
                raise ConnectionError("closed within a body")
            left -= got
        return time.perf_counter() - begin, length

    def get(self, path: str, *headers: str) -> bytes:
        self._socket.sendall(_request(path, headers))
        length, body = self._head()
        while len(body) < length:
            got = self._socket.recv(length - len(body))
            if not got:
                raise ConnectionError("closed within a body")
            body += got
        return bytes(body)

    def _head(self) -> tuple[int, bytearray]:
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            piece = self._socket.recv(4096)
            if not piece:
                raise ConnectionError("closed before an answer")
            received += piece
        if not received.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 ")):
            raise ConnectionError(f"refused: {bytes(received[:200])!r}")
        found = _LENGTH.search(received, 0, end + 2)
        if found is None:
            raise ConnectionError("an answer without a length")
        return int(found[1]), received[end + 4 :]


def _request(path: str, headers: tuple[str, ...]) -> bytes:
    lines = (f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", "")
    return "\r\n".join(lines).encode()


def answers(port: int, path: str, status: int = 200) -> bool:
    """Return whether a new connection gets a response with this status."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            one.sendall(_request(path, ("Connection: close",)))
            return one.recv(64)[8:].startswith(b" %d " % status)
    except OSError:
        return False


def wait(program: Program, path: str, status: int = 200) -> float:
    """Return seconds until the first response. Raise an ended program's output."""
    begin = time.perf_counter()
    while not answers(program.port, path, status):
        program.check()
        if time.perf_counter() - begin > MAX_WAIT:
            raise TimeoutError(f"no answer on port {program.port}")
        time.sleep(0.002)
    return time.perf_counter() - begin
