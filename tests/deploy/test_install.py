"""The installer in a scratch root, and the installed program."""

import os
import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from api_exporter.demo.server import DEMO_TOKEN
from api_exporter.settings.example import example_file
from tests.deploy.programs import DEPLOY, new_folder, run
from tests.deploy.test_systemd import UNITS, values
from tests.integration.programs import environment, program
from tests.integration.test_daemon import installed

INSTALL, UNINSTALL = DEPLOY / "install.sh", DEPLOY / "uninstall.sh"

PYTHON = f"""
case "$*" in
    "-m venv "*) ;;
    *) exec {sys.executable} "$@" ;;
esac
{sys.executable} -m venv --without-pip "$3"
site=$(echo "$3"/lib/python*/site-packages)
echo {sysconfig.get_path("purelib")} >"$site/dependencies.pth"
printf '#!%s\\n' "$3/bin/python" >"$3/bin/twistd"
echo "from twisted.scripts.twistd import run; run()" >>"$3/bin/twistd"
chmod 755 "$3/bin/twistd"
"""
"""A Python whose new environments see pip and our dependencies, as the tests do."""

MODES = {
    "etc/api-exporter": 0o750,
    "etc/api-exporter/config": 0o640,
    "etc/systemd/system/api-exporter.service": 0o644,
    "etc/systemd/system/api-exporter.socket": 0o644,
    "etc/systemd/system/api-exporter.service.d/hardened.conf": 0o644,
    "etc/sysusers.d/api-exporter.conf": 0o644,
}


class InstallTests(SynchronousTestCase):
    def setUp(self) -> None:
        program("systemd-sysusers")
        if os.geteuid():
            raise SkipTest("missing privilege: root")
        self.root = Path(self.mktemp()).absolute()
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        [self.wheel] = installed().parent.glob("*.whl")
        self.tools = new_folder(self)
        self.env = environment(
            PIP_IGNORE_INSTALLED="1",
            PIP_NO_DEPS="1",
            PIP_NO_INDEX="1",
            PYTHON=str(self.script("python", PYTHON)),
        )

    def script(self, name: str, text: str) -> Path:
        script = self.tools / name
        script.write_text(f"#!/bin/sh\n{text}")
        script.chmod(0o755)
        return script

    def install(self, *arguments: str, status: int = 0, **env: str) -> str:
        into = (INSTALL, "--root", self.root, "--source", self.wheel)
        return run(*into, *arguments, status=status, env={**self.env, **env})

    def version(self) -> str:
        twistd = self.root / "opt/api-exporter/bin/twistd"
        return run(twistd, "api-exporter", "--version", env=self.env)

    def environments(self) -> list[str]:
        return sorted(path.name for path in (self.root / "opt").iterdir())

    def uninstall(self, *arguments: str) -> str:
        root = self.root.relative_to("/")  # where `run` is
        return run(UNINSTALL, "--root", root, *arguments, env=self.env)

    def files(self) -> list[str]:
        """Return all paths below the root except those of the program."""
        found = (str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        return sorted(x for x in found if not x.startswith("opt/api-exporter"))

    def test_install(self) -> None:
        """A second installation keeps settings and modes; root owns the token."""
        self.assertRegex(self.install(), r"(?m)^api-exporter [\d.]+\S* \w+ \S+Z$")
        self.assertModes()
        unit = self.root / "etc/systemd/system/api-exporter.service"
        self.assertNotIn(".example/", unit.read_text())
        files = self.files()
        config = self.root / "etc/api-exporter/config"
        self.assertEqual(example_file(), config.read_text())
        config.write_text("UPSTREAM_API_URL=https://kept.example\n")
        config.chmod(0o666)
        token = self.root / "etc/api-exporter/token"
        token.write_text(DEMO_TOKEN)
        self.install()
        self.assertModes()
        dropin = "etc/systemd/system/api-exporter.service.d/token.conf"
        own = {"etc/api-exporter/token", dropin}
        self.assertEqual(own, {*self.files()} ^ {*files})
        self.assertEqual((oct(0o600), 0, 0), self.mode(token))
        self.assertIn("kept.example", config.read_text())
        token.unlink()
        self.install()
        self.assertEqual(files, self.files())

    def assertModes(self) -> None:  # noqa: N802 - as the others
        """Modes and owners are those of MODES; only the group may read the settings."""
        group = self.group()
        self.assertGreater(group, 0)
        for name, mode in MODES.items():
            gid = group if name.startswith("etc/api-exporter") else 0
            self.assertEqual((oct(mode), 0, gid), self.mode(self.root / name), name)

    def mode(self, path: Path) -> tuple[str, int, int]:
        """Return mode, owner and group of a file."""
        stat = path.stat()
        return oct(stat.st_mode & 0o7777), stat.st_uid, stat.st_gid

    def group(self) -> int:
        groups = (self.root / "etc/group").read_text()
        [gid] = re.findall(r"^api-exporter:[^:]*:(\d+):", groups, re.MULTILINE)
        return int(gid)

    def test_dry_run(self) -> None:
        """--dry-run prints the commands, as a shell reads them, and does nothing."""
        before = self.files()
        said = self.install("--dry-run")
        self.assertEqual(before, self.files())
        for words in ("systemd-sysusers", "-m venv", "pip install", "--version", "mv"):
            self.assertIn(words, said)
        quoted = """sh -c '"$0" --settings >"$1.new" && mv "$1.new" "$1"' /"""
        self.assertIn(quoted, said)
        said = self.uninstall("--dry-run", "--purge")
        self.assertEqual(before, self.files())
        self.assertIn(f"rm -rf {self.root}/etc/api-exporter ", said)

    def test_dry_run_blind(self) -> None:
        """--dry-run does not guess what is in a folder that it may not look into."""
        (self.root / "etc/api-exporter").mkdir(mode=0, parents=True)
        blind = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        command = (*blind, INSTALL, "--dry-run", "--root", self.root)
        said = run(*command, status=1, env=self.env)
        self.assertRegex(said, r"^install.sh: run this script as root: .*\n$")

    def test_prerequisites(self) -> None:
        """Without a suitable Python, one line names the fault; nothing is installed."""
        old = self.script("old", "exit 1")
        bare = self.script("bare", 'case "$2" in *ensurepip*) exit 1 ;; esac')
        for python, words in (
            (old, "is not Python 3.11 or newer; set PYTHON to another"),
            (self.tools / "none", "is not Python 3.11 or newer"),
            (bare, "cannot make virtual environments (Debian: apt-get install python3"),
        ):
            said = self.install(status=1, PYTHON=str(python))
            self.assertIn(words, said)
            self.assertEqual(1, said.count("\n"), said)
            self.assertFalse(self.root.exists())

    def test_damaged(self) -> None:
        """An environment without pip, or without its Python, is replaced."""
        half = self.root / "opt/api-exporter"
        run(sys.executable, "-m", "venv", "--without-pip", half)
        self.install()
        self.assertIn("api-exporter ", self.version())
        self.assertEqual(2, len(self.environments()))
        self.assertEqual("", self.before())
        [libraries] = (self.root / "opt/api-exporter/lib").iterdir()
        libraries.rename(libraries.with_name("python3.9"))
        self.assertIn(
            f"{self.root}/opt/api-exporter does not fit the Python of this system:"
            " run deploy/install.sh again\n",
            self.before(status=1),
        )
        self.install()
        self.assertEqual("", self.before())
        self.assertIn("api-exporter ", self.version())
        self.assertEqual(2, len(self.environments()))

    def before(self, status: int = 0) -> str:
        """Run the unit's ExecStartPre. Return its output."""
        [command] = values(UNITS / "api-exporter.service", "ExecStartPre")
        here = command.replace("/opt/", f"{self.root}/opt/")
        return run(*shlex.split(here), status=status, env=self.env)

    def test_failed(self) -> None:
        """An installation that fails leaves nothing, or the running version."""
        self.install(status=1, PIP_NO_DEPS="0")  # and no index
        self.assertEqual((["opt"], []), (self.files(), self.environments()))
        self.install()
        before, version = self.environments(), self.version()
        python = self.tools / "python"
        halfway = self.script("halfway", f'{python} "$@" && [ "$2" != venv ]')
        mute = self.script("mute", f'{python} "$@" && rm -f "$3/bin/twistd"')
        for status, env in (
            (1, {"PYTHON": str(halfway)}),
            (127, {"PYTHON": str(mute)}),
            (1, {"PIP_NO_DEPS": "0"}),  # and no index
        ):
            self.install(status=status, **env)
            self.assertEqual(before, self.environments())
            self.assertEqual(version, self.version())

    def test_killed(self) -> None:
        """A signal while the new version takes its place leaves one that works."""
        self.install()
        self.script("mv", f'{shutil.which("mv")} "$@" && kill "$PPID"')
        self.install(status=1, PATH=f"{self.tools}:{os.environ['PATH']}")
        self.assertIn("api-exporter ", self.version())

    def test_half_written(self) -> None:
        """Settings that were not written to their end do not count as those to keep."""
        self.script("sh", 'exec /bin/sh "$1" "$2" false "$4"')
        self.install(status=1, PATH=f"{self.tools}:{os.environ['PATH']}")
        self.assertFalse((self.root / "etc/api-exporter/config").exists())

    def test_uninstall(self) -> None:
        """Removing keeps settings, user and events; --purge nothing. Both repeat."""
        self.install()
        enabled = self.root / "etc/systemd/system/multi-user.target.wants"
        run("systemctl", f"--root={self.root}", "enable", "api-exporter.service")
        self.assertNotEqual([], list(enabled.iterdir()))
        own = [
            "etc/api-exporter/token",
            "etc/systemd/system/api-exporter.service.d/override.conf",
            "var/lib/api-exporter/events.cursor",
            "var/log/api-exporter/events.jsonl",
        ]
        for name in own:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).touch()
        for _ in range(2):
            self.uninstall()
            left = {x for x in self.files() if (self.root / x).is_file()}
            ours = {x for x in left if "api-exporter" in x}
            self.assertEqual({"etc/api-exporter/config", *own}, ours)
            self.assertEqual([], self.environments())
            self.assertGreater(self.group(), 0)
        for _ in range(2):
            self.uninstall("--purge")
            self.assertEqual([], [x for x in self.files() if "api-exporter" in x])
            for name in ("passwd", "group", "shadow", "gshadow"):
                self.assertNotIn("api-exporter", (self.root / "etc" / name).read_text())
