"""Guesses passwords: `python -m tests.integration.guessing PORT CLIENTS SECONDS`.

Prints that they begin, and at last how many answers of each status there were.
"""

import base64
import http.client
import sys
import threading
import time
from collections import Counter

PAUSE = 0.05
"""Seconds between two guesses of one client."""


def guess(port: int, end: float, seen: "Counter[int]", number: int) -> None:
    """One client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    tries = 0
    while time.monotonic() < end:
        tries += 1
        password = base64.b64encode(f"alice:{number}-{tries}".encode()).decode()
        try:
            connection.request(
                "GET", "/", headers={"Authorization": f"Basic {password}"}
            )
            answer = connection.getresponse()
            answer.read()
            seen[answer.status] += 1
        except (OSError, http.client.HTTPException):
            connection.close()
        time.sleep(PAUSE)
    connection.close()


def main() -> None:
    port, clients, seconds = map(int, sys.argv[1:])
    end = time.monotonic() + seconds
    seen: Counter[int] = Counter()
    threads = [
        threading.Thread(target=guess, args=(port, end, seen, number))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    sys.stdout.write("begin\n")
    sys.stdout.flush()
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{dict(seen)}\n")


if __name__ == "__main__":
    main()
