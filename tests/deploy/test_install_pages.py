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
    def test_commands(self) -> None:
        """Files, options and goals in commands exist, and the package's files."""
        build = (DEPLOY / "package-files.sh").read_text()
        goals = "".join((x / "Makefile").read_text() for x in (ROOT, DEPLOY))
        for name in {path.name for path in INSTALL.glob("*.md")} - {"README.md"}:
            commands = "".join(blocks(f"install/{name}", "sh"))
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
