"""A running Prometheus, and queries of it."""

import json
import urllib.parse
from pathlib import Path
from typing import Any
from unittest import TestCase

from tests.integration.programs import environment, free_port, get, program, start

SECOND = "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
"""The head of a configuration that scrapes each second."""


class Prometheus:
    """A Prometheus that runs until the test ends.

    Args:
        directory: gets a folder `prometheus` with configuration, data and output.
        configuration: the text of `prometheus.yml`.
    """

    def __init__(self, test: TestCase, directory: Path, configuration: str) -> None:
        command = program("prometheus")
        folder = directory / "prometheus"
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "prometheus.yml"
        self.file.write_text(configuration)
        self.port = free_port()
        start(
            test,
            [
                command,
                f"--config.file={self.file.name}",
                "--storage.tsdb.path=tsdb",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            folder,
            environment(),
        )

    def get(self, path: str) -> tuple[int, str]:
        """Return the status and the text of a page."""
        status, _, body = get(f"http://127.0.0.1:{self.port}{path}")
        return status, body.decode()

    def samples(self, expression: str) -> list[Any]:
        """Return the samples of an instant vector, none before Prometheus is ready."""
        query = urllib.parse.urlencode({"query": expression})
        status, text = self.get(f"/api/v1/query?{query}")
        if status in {0, 503}:
            return []
        if status != 200:
            raise AssertionError(f"{expression}: {text}")
        found: list[Any] = json.loads(text)["data"]["result"]
        return found

    def values(self, expression: str) -> list[float]:
        """Return the values of an instant vector in ascending order."""
        return sorted(float(one["value"][1]) for one in self.samples(expression))
