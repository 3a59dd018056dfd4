"""Queries of a running Prometheus."""

import json
import urllib.parse
from typing import Any

from tests.integration.programs import get


def samples(port: int, expression: str) -> list[Any]:
    """Return the samples of an instant vector, or none before Prometheus is ready."""
    query = urllib.parse.urlencode({"query": expression})
    status, _, body = get(f"http://127.0.0.1:{port}/api/v1/query?{query}")
    if status in {0, 503}:
        return []
    if status != 200:
        raise AssertionError(f"{expression}: {body.decode()}")
    found: list[Any] = json.loads(body)["data"]["result"]
    return found
