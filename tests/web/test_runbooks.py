"""The runbooks, as they are served and as they are installed."""

import re
import sys
from pathlib import Path

from api_exporter.attention.thresholds import shipped
from api_exporter.web import runbooks
from api_exporter.web.status.document import POLICY
from tests.web.served import ServedTestCase, header
from tests.web.watched import Watched


class RunbooksTests(ServedTestCase):
    def setUp(self) -> None:
        self.tree = Watched(collectors=["peers"]).tree

    def test_page(self) -> None:
        """Each alert has its section, with an anchor of its name in small letters."""
        status, headers, body = self.request("/runbooks")
        self.assertEqual(200, status)
        self.assertEqual("text/html; charset=utf-8", header(headers, "content-type"))
        self.assertEqual(POLICY, header(headers, "content-security-policy"))
        found = re.findall(r'<h2 id="(\w+)">(\w+)</h2>', body.decode())
        alerts = [(name.lower(), name) for name in shipped().severities]
        self.assertEqual(alerts, found, "make run makes the page anew")

    def test_plain(self) -> None:
        """It runs nothing, and leads nowhere but to its own anchors."""
        page = self.request("/runbooks")[2].decode()
        self.assertNotIn("<script", page)
        self.assertEqual(1, page.count("<style>"))
        anchors = set(re.findall(r' id="([^"]+)"', page))
        links = re.findall(r'<a [^>]*href="([^"]*)"', page)
        self.assertNotEqual([], links)
        for link in links:
            self.assertIn(link.removeprefix("#"), anchors)

    def test_missing(self) -> None:
        """Where nobody has made it, a line says who does."""
        self.patch(runbooks, "FILE", Path(self.mktemp()))
        status, _, body = self.request("/runbooks")
        self.assertEqual((404, runbooks.MISSING), (status, body.decode()))


class InstalledTests(ServedTestCase):
    def test_installed(self) -> None:
        """What is installed is a file; where it is gone once the program ends, as that
        of one executable file is, it is the exporter's page.
        """
        self.assertEqual(str(runbooks.FILE), runbooks.installed())
        for unpacked, told in (
            ("/usr/lib/api-exporter/_internal", str(runbooks.FILE)),
            ("/scratch/_MEI123", "/runbooks"),
        ):
            self.patch(sys, "executable", "/usr/lib/api-exporter/api-exporter")
            self.patch(runbooks, "UNPACKED", unpacked)
            self.assertEqual(told, runbooks.installed())
