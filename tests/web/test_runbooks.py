"""The runbooks, as served and as installed."""

import re
import sys
from pathlib import Path

from api_exporter.web import runbooks
from api_exporter.web.status.pages import POLICY
from tests.web.served import ServedTestCase, header
from tests.web.watched import Watched
from tools.prometheus import ALERTS


class RunbooksTests(ServedTestCase):
    def setUp(self) -> None:
        self.tree = Watched(collectors=["peers"]).tree

    def test_page(self) -> None:
        """Each alert has an anchor; the page has no script and no other links."""
        status, headers, body = self.request("/runbooks")
        page = body.decode()
        self.assertEqual(200, status)
        self.assertEqual("text/html; charset=utf-8", header(headers, "content-type"))
        self.assertEqual(POLICY, header(headers, "content-security-policy"))
        found = re.findall(r'<h2 id="(\w+)">(\w+)</h2>', page)
        names = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
        alerts = {(name.lower(), name) for name in names}
        self.assertEqual(alerts, set(found), "make run makes the page anew")
        contents = page[page.index("<nav") : page.index("</nav>")]
        for name in names:
            self.assertIn(f'<a href="#{name.lower()}">{name}</a>', contents)
            self.assertIn(f'<span id="{name}">', page)
        self.assertEqual(len(names), page.count('<a href="#contents">'))
        for subject, severity, name in (
            ("Exporter", "critical", "ApiExporterDown"),
            ("Networks and routes", "critical", "NetBirdRouteUnreachable"),
            ("Account", "warning", "NetBirdSetupKeyNearlyUsedUp"),
        ):
            listed = contents.partition(f"<strong>{subject}</strong>")[2]
            [links, *_] = re.findall(f"<li>{severity}: (.*?)</li>", listed)
            self.assertIn(f">{name}</a>", links)
        self.assertNotIn("<script", page)
        self.assertEqual(1, page.count("<style>"))
        links = set(re.findall(r'<a [^>]*href="([^"]*)"', page))
        self.assertNotEqual(set(), links)
        self.assertLessEqual(
            links, {f"#{x}" for x in re.findall(r' id="([^"]+)"', page)}
        )

    def test_missing(self) -> None:
        """Without the built file a line says how to build it."""
        self.patch(runbooks, "RUNBOOKS_FILE", Path(self.mktemp()))
        status, _, body = self.request("/runbooks")
        self.assertEqual((404, runbooks.MISSING_MESSAGE), (status, body.decode()))


class InstalledTests(ServedTestCase):
    def test_links(self) -> None:
        """A link of an installed document leads to another one, or to an address."""
        folder = runbooks.RUNBOOKS_FILE.parent
        texts = [file.read_text() for file in folder.glob("*.md")]
        self.assertEqual(7, len(texts), "make run makes them anew")
        links = set(re.findall(r"\]\(([^)#]+)", "".join(texts)))
        links = {link for link in links if not link.startswith("https://")}
        self.assertEqual(set(), links - {file.name for file in folder.iterdir()})

    def test_installed(self) -> None:
        """The address is the installed file.

        A one-file executable removes its files when it ends, so the address is the
        page's.
        """
        self.assertEqual(str(runbooks.RUNBOOKS_FILE), runbooks.runbooks_address())
        for unpacked, expected in (
            ("/usr/lib/api-exporter/_internal", str(runbooks.RUNBOOKS_FILE)),
            ("/scratch/_MEI123", "/runbooks"),
        ):
            self.patch(sys, "executable", "/usr/lib/api-exporter/api-exporter")
            self.patch(runbooks, "UNPACKED", unpacked)
            self.assertEqual(expected, runbooks.runbooks_address())
