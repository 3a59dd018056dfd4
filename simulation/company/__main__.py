"""Record the company that `--demo` plays: `python -m simulation.company`."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import api_exporter.demo
from api_exporter.demo.go_json import encode
from api_exporter.demo.network import RECORDED_AT, RECORDING_FILE, USAGE_RECORDED_AT
from simulation.company.network import PATHS, SimulatedNetwork

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
        yield path, body[:EVENTS] if path == "/api/events/audit" else body


if __name__ == "__main__":
    PLACE.write_bytes(gzip.compress(recording(), mtime=0))
