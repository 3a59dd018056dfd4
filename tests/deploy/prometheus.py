"""A Prometheus with our rules and short intervals."""

import json
import re
import shutil
from typing import Any
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, new_folder, run
from tests.integration import promql
from tests.integration.programs import program

FILES = DEPLOY / "prometheus"


def needs(name: str, oldest: str) -> None:
    """Skip the test if a program of Prometheus is older."""
    said = run(program(name), "--version")
    [found] = re.findall(rf"^{name}, version (\d+\.\d+\.\d+)", said, re.MULTILINE)
    if _numbers(found) < _numbers(oldest):
        raise SkipTest(f"{name} {found} is older than {oldest}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


class Prometheus(promql.Prometheus):
    """A Prometheus with our rules, until the test ends.

    Args:
        config: the text of `prometheus.yml`; our rules are in the same folder.
    """

    def __init__(self, test: SynchronousTestCase, config: str) -> None:
        directory = new_folder(test)
        shutil.copytree(FILES, directory / "prometheus")
        alerts = directory / "prometheus/alerts.yml"
        alerts.write_text(alerts.read_text().replace("interval: 5m", "interval: 1s"))
        super().__init__(test, directory, config.replace("30s", "1s"))

    def alerts(self) -> list[Any]:
        """Return firing and pending alerts."""
        found: list[Any] = self._read("alerts").get("alerts", [])
        return found

    def health(self) -> set[tuple[str, str | None]]:
        """Return the health and the last error of all rules."""
        return {
            (rule["health"], rule.get("lastError"))
            for group in self._read("rules").get("groups", [])
            for rule in group["rules"]
        }

    def _read(self, path: str) -> dict[str, Any]:
        status, text = self.get(f"/api/v1/{path}")
        return json.loads(text)["data"] if status == 200 else {}
