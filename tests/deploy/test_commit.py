"""The commit of a tree, with git and without."""

import shutil
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.deploy.programs import DEPLOY, new_folder, run
from tests.integration.programs import ROOT, program

BUILD = 'COMMIT = "abcdef012345"\nBUILT = "2026-08-22T19:10:00Z"\n'
"""The module in a source distribution."""


class CommitTests(SynchronousTestCase):
    def setUp(self) -> None:
        program("git")
        self.tree = new_folder(self)
        for name in ("deploy", "api_exporter"):
            (self.tree / name).mkdir()
        shutil.copy(DEPLOY / "commit.sh", self.tree / "deploy")
        shutil.copy(ROOT / ".gitattributes", self.tree)

    def told(self, tree: Path) -> list[str]:
        return [run(tree / "deploy/commit.sh", x).strip() for x in ("hash", "time")]

    def git(self, *command: str) -> str:
        own = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return run("git", "-C", self.tree, *own, *command).strip()

    def test_git(self) -> None:
        """A checkout gets its commit from git, an archive from git's substitution."""
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=one")
        wanted = self.git("log", "-1", "--format=%H %ct").split()
        wanted[0] = wanted[0][:12]
        self.assertEqual(wanted, self.told(self.tree))
        file = self.tree.with_name("archive.tar")
        self.git("archive", f"--output={file}", "HEAD")
        other = self.tree.with_name("unpacked")
        shutil.unpack_archive(file, other)
        self.assertEqual(wanted, self.told(other))

    def test_without_git(self) -> None:
        """A source distribution has its commit; any other tree returns "unknown"."""
        self.assertEqual("unknown", self.told(self.tree)[0])
        (self.tree / "api_exporter/_build.py").write_text(BUILD)
        self.assertEqual(["abcdef012345", "1787425800"], self.told(self.tree))
