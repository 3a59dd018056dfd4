"""Clients without manners, as a program of their own that ends by itself.

`python -m tests.integration.crowd idle|looping PORT COUNT SECONDS`: idle ones ask for
nothing, and come again as soon as they are dropped; looping ones ask for `/` for ever.
"""

import asyncio
import selectors
import socket
import sys
import time

ADDRESS = "127.0.0.2"
"""Where all of them come from."""

AT_ONCE = 40
"""Connections that are begun before there is a break of 20 ms."""


def idle(port: int, count: int, end: float) -> int:
    """Returns how often one of them was dropped."""
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


async def looping(port: int, count: int, end: float) -> int:
    """Returns how many pages they got."""

    async def client() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        pages = 0
        while time.monotonic() < end:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            _, _, rest = head.lower().partition(b"content-length:")
            await reader.readexactly(int(rest.split()[0]))
            pages += 1
        writer.close()
        return pages

    return sum(await asyncio.gather(*(client() for _ in range(count))))


def main() -> None:
    kind, port, count, seconds = sys.argv[1:]
    sys.stdout.write("begin\n")
    sys.stdout.flush()
    end = time.monotonic() + float(seconds)
    if kind == "idle":
        done = idle(int(port), int(count), end)
    else:
        done = asyncio.run(looping(int(port), int(count), end))
    sys.stdout.write(f"{done}\n")


if __name__ == "__main__":
    main()
