"""The pinned versions satisfy the requirements."""

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from twisted.trial.unittest import SynchronousTestCase

from tools.documents import ROOT

LOCK = ROOT / "deploy/lock"

_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)(?: ; [^\\]+)? \\\n"
    r"(?:    --hash=sha256:[0-9a-f]{64} \\\n)*"
    r"    --hash=sha256:[0-9a-f]{64}\n",
    re.MULTILINE,
)


def locked(name: str) -> dict[str, str]:
    """Return the versions in a file, which must have only entries with hashes."""
    text = (LOCK / name).read_text()
    left = [x for x in _ENTRY.sub("", text).splitlines() if not x.startswith("#")]
    if left:
        raise AssertionError(f"deploy/lock/{name}: {left[0]!r} is no entry")
    return {found["name"]: found["version"] for found in _ENTRY.finditer(text)}


class LockTests(SynchronousTestCase):
    def holds(self, file: str, wanted: list[str]) -> None:
        """Fail unless a file has a fitting version for each requirement."""
        versions = locked(file)
        for requirement in map(Requirement, wanted):
            name = canonicalize_name(requirement.name)
            self.assertIn(name, versions, f"{file}: make lock")
            fits = requirement.specifier.contains(versions[name], prereleases=True)
            self.assertTrue(fits, f"{file}: {requirement} has {versions[name]}")

    def test_run(self) -> None:
        """Each requirement of setup.cfg is pinned, in an allowed version."""
        setup = ConfigParser()
        setup.read(ROOT / "setup.cfg")
        needed = setup["options"]["install_requires"]
        fast = setup["options.extras_require"]["fast"]
        self.holds("run.txt", f"{needed}{fast}".strip().splitlines())

    def test_build(self) -> None:
        """Each requirement of the build is pinned."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        listed = (LOCK / "build.in").read_text().splitlines()
        self.holds("build.txt", [x for x in listed if not x.startswith("#")])
        self.holds("build.txt", project["build-system"]["requires"])

    def test_one_environment(self) -> None:
        """Both files have the same versions, because they are installed together."""
        run, build = locked("run.txt"), locked("build.txt")
        for name in run.keys() & build.keys():
            self.assertEqual(run[name], build[name], name)

    def test_no_address(self) -> None:
        """A file names no package index: that is the user's choice."""
        for path in sorted(Path(LOCK).iterdir()):
            self.assertNotRegex(path.read_text(), r"://|^-", path.name)
