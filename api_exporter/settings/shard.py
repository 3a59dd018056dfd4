"""A shard: the accounts of one of several processes."""

import re
import socket
from hashlib import blake2b

from msgspec import Struct


class Shard(Struct, frozen=True):
    """One of `total` processes; `number` counts from 0."""

    number: int
    total: int

    def keeps(self, name: str) -> bool:
        """Return whether this process has the account of that name.

        With rendezvous hashing, each name belongs to exactly one process. An additional
        process takes an equal share from the others, and no other account moves.
        """
        return self.number == max(range(self.total), key=lambda n: _weight(n, name))


def _weight(number: int, name: str) -> bytes:
    return blake2b(f"{number}/{name}".encode(), digest_size=8).digest()


def shard(text: str) -> Shard:
    """Parse `0/3`, or `auto/3` with a host name such as `api-exporter-0`."""
    match = re.fullmatch(r"(auto|\d{1,3})/(\d{1,3})", text, re.ASCII)
    if not match:
        raise ValueError
    number, total = match[1], int(match[2])
    if number == "auto":
        host = socket.gethostname()
        ordinal = re.search(r"-(\d{1,3})$", host.partition(".")[0], re.ASCII)
        if not ordinal:
            raise ValueError(f"the host's name {host!r} does not end in - and a number")
        number = ordinal[1]
    if not int(number) < total:
        raise ValueError(f"{number} is not less than {total}")
    return Shard(int(number), total)
