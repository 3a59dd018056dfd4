"""The upstream's answers, made up: one file for each resource, with all oddities in.

Null lists, zero times with and without an offset, `<nil>`, duplicate names, quotes,
backslashes, `&` and CJK, fractions of nine digits, development versions, ids
of things that are gone, enum values from the future, keys that an older server leaves
out. Every peer's host name is a string of its own.
"""

import gzip
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

from api_exporter.collectors.selection import selection
from api_exporter.collectors.table import COLLECTORS
from api_exporter.netbird.bodies import DecodeContext, Decoded
from api_exporter.netbird.facts.personal import PERSONAL
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import BY_NAME, CURRENT_USER

T = TypeVar("T")

FOLDER = Path(__file__).parent

_SELECTED = selection([c.name for c in COLLECTORS], {}).resources

EVERYTHING = tuple(r for r in _SELECTED if r.name != CURRENT_USER)
"""What collectors read where all are on."""


def body(name: str) -> bytes:
    """One of the files, by a resource's name or a variant of it."""
    return (FOLDER / f"{name}.json").read_bytes()


NOON = 1_779_451_650.0
"""When the made-up ones were sent, 2026-05-22 12:07:30 UTC."""

STOCK_TIME = 1_795_349_280.0
"""When the bodies of the stock account were sent, 2026-11-22 12:08 UTC."""


def stock() -> dict[str, bytes]:
    """What a fresh NetBird 0.77.1 with a dozen healthy peers sends, by path.

    Recorded, not made up: its settings are NetBird's defaults.
    """
    return recorded("stock")


def recorded(server: str) -> dict[str, bytes]:
    """What a server sent, by path.

    `recorded` is of a network of 288 peers with something of everything,
    `recorded_agents` of a small one.
    """
    packed = FOLDER / f"{server}.txt.gz"
    if packed.exists():
        return bodies(gzip.decompress(packed.read_bytes()))
    return bodies((FOLDER / f"{server}.txt").read_bytes())


def bodies(text: bytes) -> dict[str, bytes]:
    """Bodies by name, of a file with a line for each name and one for its body."""
    lines = text.split(b"\n")[:-1]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return {name.decode(): b"%b\n" % found for name, found in pairs}


def decoded(resource: str, raw: bytes) -> Decoded:
    """What a resource makes of a body."""
    return BY_NAME[resource].body.decode(raw)


def inventory(*, personal: bool = False, **others: str) -> Inventory:
    """All that the bodies tell; `accounts="accounts_sparse"` takes another body."""
    known = Inventory(personal=frozenset(PERSONAL if personal else ()), now=NOON)
    for resource in EVERYTHING:
        name = others.get(resource.name, resource.name)
        # What was used this month stands in two answers.
        names = (f"{name}_earlier", name) if name == "agent_usage" else (name,)
        for each in names:
            before = getattr(known, resource.name) or ()
            found = resource.body.decode(
                body(each), DecodeContext(before, now=NOON)
            ).records
            known = known.with_(resource.name, found)
    return known


def finish(steps: Generator[object, None, T]) -> T:
    """What a generator returns when nobody pauses it."""
    returned: list[T] = []

    def to_the_end() -> Generator[object, None, None]:
        returned.append((yield from steps))

    for _ in to_the_end():
        pass
    return returned[0]
