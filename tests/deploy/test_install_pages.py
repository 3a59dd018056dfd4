"""The pages of `docs/install` name existing things. `make acceptance` runs them."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.cli import CommandOptions
from tests.deploy.programs import DEPLOY, blocks
from tests.integration.programs import ROOT

INSTALL = ROOT / "docs" / "install"

OPTIONS = {"version", "help"} | {
    name for name, *_ in (*CommandOptions.optFlags, *CommandOptions.optParameters)
}


class InstallPageTests(SynchronousTestCase):
    def setUp(self) -> None:
        found = sorted(INSTALL.glob("*.md"))
        self.texts = {path.name: path.read_text() for path in found}
        self.index = self.texts.pop("README.md")
        self.commands = {name: blocks(f"install/{name}", "sh") for name in self.texts}

    def test_ways(self) -> None:
        """Each page is in the index and in the README. Each has a command for a
        checkout, at most five lines to a running exporter, an upgrade and a removal.
        """
        readme = (ROOT / "README.md").read_text()
        self.assertLessEqual({"debian.md", "other.md", "systemd.md"}, {*self.texts})
        for name, text in self.texts.items():
            self.assertRegex(self.index, rf"\]\({name}[#)]")
            self.assertIn(f"](docs/install/{name})", readme)
            self.assertRegex(text, r"\A# .*\n\nFrom a checkout: `[^`]+`", name)
            commands = self.commands[name][0].replace("\\\n", "").splitlines()
            self.assertLessEqual(len(commands), 5, name)
            for words in (
                r"(## Upgrade\n|\*\*To upgrade\*\*)",
                "(## Remove|remove it)",
            ):
                self.assertRegex(text, words, name)

    def test_commands(self) -> None:
        """Files, options and goals in commands exist, and the package's files."""
        build = (DEPLOY / "package-files.sh").read_text()
        goals = "".join((x / "Makefile").read_text() for x in (ROOT, DEPLOY))
        for name, found in self.commands.items():
            commands = "".join(found)
            for path in re.findall(r"(?<![\w/.])deploy/[\w./-]+", commands):
                self.assertTrue((ROOT / path).exists(), f"{name}: {path}")
            called = r"(?<!lib/)(?<!--name )(?<!test )\bapi-exporter((?: --?[\w-]+)+)"
            for line in re.findall(called, commands):
                for option in re.findall(r"--([\w-]+)", line):
                    self.assertIn(option, OPTIONS, f"{name}: {line}")
            for goal in re.findall(r"\bmake ([\w-]+)", commands):
                self.assertRegex(goals, rf"(?m)^{goal}:", name)
            for path in re.findall(r"/usr/share/api-exporter/([\w./-]+)", commands):
                self.assertIn(path, build, f"{name}: {path}")
