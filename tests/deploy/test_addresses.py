"""Nothing presumes what is not published, and its addresses are said once."""

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
"""The image's is a part of the forge's."""

FILES = (
    "deploy/addresses",
    "deploy/helm/api-exporter/values.yaml",
    "deploy/container/Containerfile",
    "docs/install/helm.md",
    ".github/workflows/release.yml",
    "api_exporter/web/status/page.py",
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
        """What the script says that writes them."""
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
        """All stand wherever the old ones stood, and can be written over again."""
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

    def test_some(self) -> None:
        """What is not said stays; nothing at all changes nothing."""
        self.assertEqual("", self.written({}))
        self.assertEqual(self.before, self.now())
        self.written({"MAIL": OWN["MAIL"]})
        changed = {n for n, text in self.now().items() if text != self.before[n]}
        self.assertEqual({"deploy/addresses"}, changed)

    def test_mistakes(self) -> None:
        """What is no address is one line, and nothing is written."""
        for name, value in (
            ("FORGE", "git.example.org/me"),
            ("IMAGE", "https://git.example.org/me"),
            ("CHART", "oci://git.example.org/me"),
            ("MAIL", "me"),
        ):
            [line] = self.written({name: value}).splitlines()
            self.assertTrue(line.startswith(f"{name}: {value!r} is not allowed: "))
            self.assertEqual(self.before, self.now())

    def test_the_same(self) -> None:
        """Two that are the same could never be told apart again: nothing is written."""
        line = self.written({**OWN, "CHART": OWN["IMAGE"]})
        self.assertTrue(line.startswith("IMAGE and CHART: both are the same"))
        self.assertEqual(self.before, self.now())


class PublishedTests(SynchronousTestCase):
    def setUp(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "*.md", "api_exporter", "deploy", ".github"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        self.texts = {
            name: (ROOT / name).read_text(errors="replace")
            for name in listed
            if (ROOT / name).exists()
        }

    def test_one_place(self) -> None:
        """No other address of ours is written down anywhere."""
        known = addresses()
        for name, text in self.texts.items():
            for found in re.findall(
                r"[\w.]+\.\w+/api-exporter/api-exporter|ghcr\.io", text
            ):
                self.assertIn(found, "".join(known.values()), name)

    def test_no_index(self) -> None:
        """Nobody is told to install what anybody may register in an index."""
        for name, text in self.texts.items():
            found = re.findall(r"pip install [^\n]*[ '\"]api-exporter\b(?!-)", text)
            self.assertEqual([], found, name)
