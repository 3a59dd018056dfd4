"""Clients that misbehave, as a program of their own that ends by itself.

`python -m tests.integration.crowd idle|looping|guessing PORT COUNT SECONDS`: idle ones
send no request, and connect again when they are disconnected. Looping ones request `/`
again and again. Guessing ones do so with passwords that are wrong.
"""

import asyncio
import selectors
import socket
import sys
import time
from base64 import b64encode
from collections import Counter

ADDRESS = "127.0.0.2"
"""The address of all idle clients."""

AT_ONCE = 40
"""Connections that are begun before there is a break of 20 ms."""

PAUSE = 0.05
"""Seconds between two guesses of one client."""


def idle(port: int, count: int, end: float) -> int:
    """Return how often one of them was disconnected."""
    selector = selectors.DefaultSelector()
    dropped = 0

    def connect() -> None:
        client = socket.socket()
        client.setblocking(False)
        client.bind((ADDRESS, 0))
        client.connect_ex(("127.0.0.1", port))
        selector.register(client, selectors.EVENT_READ)

    for number in range(count):
        connect()
        if number % AT_ONCE == 0:
            time.sleep(0.02)
    while time.monotonic() < end:
        for key, _ in selector.select(0.1):
            assert isinstance(key.fileobj, socket.socket)
            selector.unregister(key.fileobj)
            key.fileobj.close()
            dropped += 1
            connect()
    return dropped


async def requesting(port: int, count: int, end: float, *, guess: bool) -> Counter[int]:
    """Return the number of responses of each status."""
    seen: Counter[int] = Counter()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            login = b64encode(f"alice:{number}-{time.monotonic()}".encode()).decode()
            shown = f"Authorization: Basic {login}\r\n" if guess else ""
            writer.write(f"GET / HTTP/1.1\r\nHost: x\r\n{shown}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            seen[int(head.split()[1])] += 1
            _, _, rest = head.lower().partition(b"content-length:")
            await reader.readexactly(int(rest.split()[0]))
            if guess:
                await asyncio.sleep(PAUSE)
        writer.close()

    async def clients(number: int) -> None:
        while time.monotonic() < end:
            try:
                await client(number)
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(PAUSE)

    await asyncio.gather(*(clients(number) for number in range(count)))
    return seen


def main() -> None:
    kind, port, count, seconds = sys.argv[1:]
    sys.stdout.write("begin\n")
    sys.stdout.flush()
    end = time.monotonic() + float(seconds)
    if kind == "idle":
        sys.stdout.write(f"{idle(int(port), int(count), end)}\n")
    else:
        guess = kind == "guessing"
        seen = asyncio.run(requesting(int(port), int(count), end, guess=guess))
        sys.stdout.write(f"{dict(seen)}\n{seen.total()}\n")


if __name__ == "__main__":
    main()
