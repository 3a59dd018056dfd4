"""A shard: which accounts a process keeps, where several share them."""

import re
import socket
from hashlib import blake2b

from msgspec import Struct


class Shard(Struct, frozen=True):
    """One of several processes; they count from 0."""

    number: int
    of: int

    def keeps(self, name: str) -> bool:
        """Whether the account of that name is this process' own.

        By rendezvous hashing: each name is kept by exactly one process, and one more of
        them takes its even share from the others while nothing else moves.
        """
        return self.number == max(range(self.of), key=lambda n: _weight(n, name))


def _weight(number: int, name: str) -> bytes:
    return blake2b(f"{number}/{name}".encode(), digest_size=8).digest()


def shard(text: str) -> Shard:
    """From `0/3`, or from `auto/3` and a host's name such as `api-exporter-0`."""
    match = re.fullmatch(r"(auto|\d{1,3})/(\d{1,3})", text, re.ASCII)
    if not match:
        raise ValueError
    number, of = match[1], int(match[2])
    if number == "auto":
        host = socket.gethostname()
        ordinal = re.search(r"-(\d{1,3})$", host.partition(".")[0], re.ASCII)
        if not ordinal:
            raise ValueError(f"the host's name {host!r} does not end in - and a number")
        number = ordinal[1]
    if not int(number) < of:
        raise ValueError(f"{number} is not less than {of}")
    return Shard(int(number), of)
