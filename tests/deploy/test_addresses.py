"""Texts use only the published addresses, and these are defined once."""

import re
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.addresses import addresses
from tests.deploy.programs import DEPLOY
from tests.integration.programs import ROOT

SCRIPT = DEPLOY / "release/addresses.py"

OWN = {
    "FORGE": "https://git.example.org/me/api-exporter",
    "IMAGE": "git.example.org/me/api-exporter",
    "CHART": "git.example.org/me/charts/api-exporter",
    "MAIL": "me@example.org",
}
"""The address of the image is a part of the forge's."""

FILES = (
    "deploy/addresses",
    "deploy/helm/api-exporter/values.yaml",
    "deploy/container/Containerfile",
    "docs/install/helm.md",
    ".github/workflows/release.yml",
    "api_exporter/web/status/pages.py",
)


class AddressesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.tree = Path(self.mktemp())
        self.before = {}
        for name in FILES:
            file = self.tree / name
            file.parent.mkdir(parents=True, exist_ok=True)
            self.before[name] = (ROOT / name).read_text()
            file.write_text(self.before[name])
        for words in (["init", "--quiet"], ["add", "."]):
            subprocess.run(["git", *words], cwd=self.tree, check=True)

    def written(self, own: dict[str, str]) -> str:
        """Run the script that writes the addresses. Return its errors."""
        done = subprocess.run(
            [sys.executable, SCRIPT],
            cwd=self.tree,
            env={"PATH": "/usr/bin:/bin", **own},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr

    def now(self) -> dict[str, str]:
        return {name: (self.tree / name).read_text() for name in FILES}

    def test_there_and_back(self) -> None:
        """New addresses replace the old ones everywhere, and can be replaced again."""
        self.assertEqual("", self.written(OWN))
        now = self.now()
        for name, text in now.items():
            for address in addresses().values():
                self.assertNotIn(address, text, name)
        self.assertIn("  registry: git.example.org\n", now[FILES[1]])
        self.assertIn("  repository: me/api-exporter\n", now[FILES[1]])
        self.assertIn(f"oci://{OWN['CHART']} ", now["docs/install/helm.md"])
        self.assertEqual("", self.written(addresses()))
        self.assertEqual(self.before, self.now())

    def test_mistakes(self) -> None:
        """Invalid or equal addresses give one line, and no file is written."""
        for name, value in (
            ("FORGE", "git.example.org/me"),
            ("IMAGE", "https://git.example.org/me"),
            ("CHART", "oci://git.example.org/me"),
            ("MAIL", "me"),
        ):
            [line] = self.written({name: value}).splitlines()
            self.assertTrue(line.startswith(f"{name}: {value!r} is not allowed: "))
        line = self.written({**OWN, "CHART": OWN["IMAGE"]})
        self.assertTrue(line.startswith("IMAGE and CHART: both are the same"))
        self.assertEqual(self.before, self.now())


class PublishedTests(SynchronousTestCase):
    def test_texts(self) -> None:
        """Texts contain no other address, and install no name of an index."""
        own = re.compile(r"[\w.]+\.\w+/api-exporter/api-exporter|ghcr\.io")
        index = re.compile(r"pip install [^\n]*[ '\"]api-exporter\b(?!-)")
        known = "".join(addresses().values())
        files = [*ROOT.glob("*.md")]
        for name in (".github", "api_exporter", "deploy", "docs"):
            files += (x for x in (ROOT / name).rglob("*") if x.is_file())
        for file in files:
            text = file.read_text(errors="replace").replace("\\-", "-")  # of roff
            for found in own.findall(text):
                self.assertIn(found, known, file)
            self.assertEqual([], index.findall(text), file)
