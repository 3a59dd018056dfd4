"""A Prometheus with our rules and short intervals."""

import json
import re
import shutil
import urllib.parse
from pathlib import Path
from typing import Any
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, run
from tests.integration.programs import free_port, get, program, start

FILES = DEPLOY / "prometheus"


def needs(name: str, oldest: str) -> None:
    """Skip the test if a program of Prometheus is older."""
    said = run(program(name), "--version")
    [found] = re.findall(rf"^{name}, version (\d+\.\d+\.\d+)", said, re.MULTILINE)
    if _numbers(found) < _numbers(oldest):
        raise SkipTest(f"{name} {found} is older than {oldest}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


class Prometheus:
    """A Prometheus on a port of the loopback interface, until the test ends.

    Args:
        config: the text of `prometheus.yml`; our rules are in the same folder.
    """

    def __init__(self, test: SynchronousTestCase, config: str) -> None:
        self._test = test
        directory = Path(test.mktemp())
        shutil.copytree(FILES, directory)
        (directory / "prometheus.yml").write_text(config.replace("30s", "1s"))
        alerts = directory / "alerts.yml"
        alerts.write_text(alerts.read_text().replace("interval: 5m", "interval: 1s"))
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/api/v1"
        command = [program("prometheus"), "--config.file=prometheus.yml"]
        command += [
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        start(test, command, directory)

    def read(self, path: str) -> Any:
        """Return the data of a response, or None if there is none yet."""
        status, _, body = get(f"{self._url}/{path}")
        self._test.assertIn(status, {0, 200, 503}, body)
        return json.loads(body)["data"] if status == 200 else None

    def query(self, expression: str) -> list[Any]:
        """The samples of an instant vector."""
        query = urllib.parse.urlencode({"query": expression})
        data = self.read(f"query?{query}")
        return data["result"] if data else []

    def alerts(self) -> list[Any]:
        """Return firing and pending alerts."""
        data = self.read("alerts")
        return data["alerts"] if data else []

    def health(self) -> set[tuple[str, str | None]]:
        """Return the health and the last error of all rules."""
        return {
            (rule["health"], rule.get("lastError"))
            for group in (self.read("rules") or {"groups": []})["groups"]
            for rule in group["rules"]
        }
