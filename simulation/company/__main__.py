"""Record the company that `--demo` plays: `python -m simulation.company`."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import api_exporter.demo
from api_exporter.demo.go_json import encode
from api_exporter.demo.network import (
    PEERS_PATH,
    RECORDED_AT,
    RECORDING_FILE,
    USAGE_RECORDED_AT,
)
from simulation.company.network import PATHS, SimulatedNetwork

LOST = {
    "gw-lab-2": {"last_seen": "2026-11-16T22:07:41Z"},
    "gw-depot-1": {"last_seen": "2026-11-17T05:12:09Z"},
    "gw-depot-2": {"last_seen": "2026-11-17T16:31:55Z"},
}
"""Gateways that disconnected a day or two before, at times that move: in the simulated
company they have been disconnected for years.
"""

PEERS = 200
EVENTS = 100

PLACE = Path(api_exporter.demo.__file__).with_name(RECORDING_FILE)


def recording() -> bytes:
    """Return the bodies of all paths in one JSON object."""
    return encode(dict(_bodies()))


def _bodies() -> Iterator[tuple[str, object]]:
    network = SimulatedNetwork(PEERS)
    for path in PATHS:
        at = (
            USAGE_RECORDED_AT
            if path.endswith(("/consumption", "/overview"))
            else RECORDED_AT
        )
        body = json.loads(b"".join(network.body(path, at) or ()))
        if path == PEERS_PATH:
            body = [one | LOST.get(one["name"], {}) for one in body]
        yield path, body[:EVENTS] if path == "/api/events/audit" else body


if __name__ == "__main__":
    PLACE.write_bytes(gzip.compress(recording(), mtime=0))
