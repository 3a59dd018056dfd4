"""Synthetic responses of the NetBird API: one file for each resource.

They contain null lists, zero times with and without an offset, and `<nil>`. Texts have
quotes, backslashes, `&` and CJK. There are fractions of nine digits, development
versions, duplicate names, ids of deleted objects, unknown enum values and missing keys.
Every peer's host name is a unique string.
"""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path

from api_exporter.demo.go_json import encode
from api_exporter.netbird.bodies import DecodeContext, Decoded, DocumentDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import PERSONAL
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.subjects.table import (
    COLLECTORS,
    RESOURCE_BY_NAME,
    RESOURCES,
    selection,
)
from simulation.company.resource import load
from tests.inventories import inventory_of

FOLDER = Path(__file__).parent

_RESOURCES = selection([c.name for c in COLLECTORS], {}).resources

EVERYTHING = tuple(r for r in _RESOURCES if r.name != CURRENT_USER)
"""All resources that collectors read."""


def body(name: str) -> bytes:
    """Return one of the files, by a resource's name or a variant of it. A resource
    without a file has the records of the simulated company.
    """
    file = FOLDER / f"{name}.json"
    if file.exists():
        return file.read_bytes()
    template = load(name)
    is_document = isinstance(RESOURCE_BY_NAME[name].decoder, DocumentDecoder)
    return encode(template.template if is_document else template.records)


NOON = 1_779_451_650.0
"""The time of the synthetic bodies, 2026-05-22 12:07:30 UTC."""

RECORDED_TIME = 1_795_348_830.0
"""2026-11-22, 12:00:30 UTC: in all windows of the newest recorded rows."""


def recorded(server: str) -> dict[str, bytes]:
    """Return the recorded bodies of a server, by path. `recorded` is a network of 288
    peers with all kinds of records, `recorded_agents` a small one, and `stock` a new
    one with NetBird's defaults.
    """
    packed = FOLDER / f"{server}.txt.gz"
    if packed.exists():
        return bodies(gzip.decompress(packed.read_bytes()))
    return bodies((FOLDER / f"{server}.txt").read_bytes())


def bodies(text: bytes) -> dict[str, bytes]:
    """Return bodies by name, from a file with two lines for each."""
    lines = text.split(b"\n")[:-1]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return {name.decode(): b"%b\n" % found for name, found in pairs}


def by_resource(sent: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return recorded bodies by resource; the tokens are those of any user."""
    there = {re.sub("users/.+/tokens", "tokens", path): sent[path] for path in sent}
    named = {
        re.sub("users/.+/tokens", "tokens", resource.path): resource.name
        for resource in RESOURCES
    }
    found = {named[path]: text for path, text in there.items() if path in named}
    days = there.get("api/agent-network/usage/overview/granularity-day", b"[]")
    earlier = [
        one
        for one in json.loads(days)
        if "2026-11-01" <= one["period_start"] < "2026-11-22"
    ]
    found["agent_usage_earlier"] = encode(earlier)
    return found


def decoded(resource: str, raw: bytes) -> Decoded:
    """Decode a body of a resource."""
    return RESOURCE_BY_NAME[resource].decoder.decode(raw)


def inventory(*, personal: bool = False, **others: str) -> Inventory:
    """Decode all bodies; `accounts="accounts_sparse"` uses another body."""
    known = inventory_of(personal=frozenset(PERSONAL if personal else ()), now=NOON)
    for resource in EVERYTHING:
        name = others.get(resource.name, resource.name)
        # The usage of this month has two responses.
        names = (f"{name}_earlier", name) if name == "agent_usage" else (name,)
        for each in names:
            before = known.records.get(resource.name) or ()
            found = resource.decoder.decode(
                body(each), DecodeContext(before, now=NOON)
            ).records
            known = known.replacing(resource.name, found)
    return known
