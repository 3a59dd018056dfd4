"""Clients that guess passwords, as a program of their own that ends by itself.

`python -m tests.integration.crowd PORT COUNT SECONDS`
"""

import asyncio
import sys
import time
from base64 import b64encode
from collections import Counter

PAUSE = 0.05
"""Seconds between two guesses of one client."""


async def guessing(port: int, count: int, end: float) -> Counter[int]:
    """Return the number of responses of each status."""
    seen: Counter[int] = Counter()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            login = b64encode(f"alice:{number}-{time.monotonic()}".encode()).decode()
            shown = f"Authorization: Basic {login}\r\n"
            writer.write(f"GET / HTTP/1.1\r\nHost: x\r\n{shown}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            seen[int(head.split()[1])] += 1
            _, _, rest = head.lower().partition(b"content-length:")
            await reader.readexactly(int(rest.split()[0]))
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
    port, count, seconds = sys.argv[1:]
    sys.stdout.write("begin\n")
    sys.stdout.flush()
    end = time.monotonic() + float(seconds)
    sys.stdout.write(f"{dict(asyncio.run(guessing(int(port), int(count), end)))}\n")


if __name__ == "__main__":
    main()
