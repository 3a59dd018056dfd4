"""The whole page: byte for byte, and in both formats."""

import shutil
import subprocess
from unittest import SkipTest

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.text import unit
from api_exporter.subjects.table import COLLECTORS
from tests.bodies import inventory
from tests.collectors.samples import page, parsed
from tests.golden import FOLDER, pages


class GoldenTests(SynchronousTestCase):
    def test_bytes(self) -> None:
        """The pages are those in tests/golden (`python -m tests.golden` rewrites)."""
        for name, text in pages().items():
            written = (FOLDER / name).read_text(encoding="utf-8")
            self.assertEqual(written.split("\n"), text.decode().split("\n"))

    def test_formats(self) -> None:
        """Both formats have the same gauges, each explained once."""
        text = page(inventory(), COLLECTORS)
        plain = list(text_string_to_metric_families(text))
        strict = list(openmetrics.text_string_to_metric_families(f"{text}# EOF\n"))
        for family in strict:
            self.assertEqual(unit(family.name), family.unit)
            family.unit = ""
        self.assertEqual(plain, strict)
        for family in plain:
            self.assertEqual("gauge", family.type)
            self.assertFalse(family.documentation.endswith("."), family.name)

    def test_order(self) -> None:
        """The upstream's order, which is random, changes only the order of the page."""
        known = inventory()
        turned = known
        for name, records in known.records.items():
            turned = turned.replacing(name, records[::-1])
        pages = [dict(parsed(page(each, COLLECTORS))) for each in (known, turned)]
        self.assertEqual(*pages)

    def test_promtool(self) -> None:
        """Prometheus's linter finds no fault."""
        if shutil.which("promtool") is None:
            raise SkipTest("missing program: promtool")
        for personal in (False, True):
            linter = subprocess.run(
                ["promtool", "check", "metrics"],
                input=page(inventory(personal=personal)).encode(),
                capture_output=True,
                check=False,
            )
            found = linter.stdout, linter.stderr, linter.returncode
            self.assertEqual((b"", b"", 0), found)
