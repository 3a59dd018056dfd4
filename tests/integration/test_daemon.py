"""The program as an operator installs, starts and stops it: a wheel and real twistd."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import ALL_READ, ROOT, get, scraped, until


@cache
def installed() -> Path:
    """Return a virtual environment that holds the built wheel, and none of the tree."""
    directory = Path(tempfile.mkdtemp(prefix="api-exporter-"))
    atexit.register(shutil.rmtree, directory)
    source = directory / "source"
    # Without what earlier builds left behind.
    for name in ("api_exporter", "deploy", "docs", "twisted"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    quiet = ["--quiet", "--no-deps", "--no-index"]
    offline = [*quiet, "--no-build-isolation", "--wheel-dir", str(directory)]
    subprocess.run([*pip, "wheel", *offline, str(source)], check=True)
    venv = directory / "venv"
    bare = [sys.executable, "-m", "venv", "--without-pip"]
    subprocess.run([*bare, str(venv)], check=True)
    # The dependencies are those of the environment that runs the tests. A path in a
    # .pth file is not searched for further ones, so the editable tree stays out.
    site = next((venv / "lib").iterdir()) / "site-packages"
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    [wheel] = directory.glob("*.whl")
    into = ["--python", str(venv / "bin/python"), "install", "--ignore-installed"]
    subprocess.run([*pip, *into, *quiet, str(wheel)], check=True)
    return venv


class DaemonTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        path = installed() / "bin"
        self.exporter = [str(path / "api-exporter")]
        self.daemon[0] = self.twistd[0] = str(path / "python")

    def test_console_script(self) -> None:
        """The command serves all pages, says so in two lines, and leaves no file."""
        running = self.started()
        until(lambda: "reached the NetBird API" in running.said(), "the second line")
        where, reached, *_ = running.said().splitlines()
        self.assertIn(f"is at http://127.0.0.1:{self.port}/ and its metrics", where)
        self.assertIn("reached the NetBird API", reached)
        self.assertTrue(scraped(self.url(), 'netbird_api_peers{connected="true"}'))
        for path, status in (("/", 200), ("/health", 200), ("/nothing", 404)):
            self.assertEqual(status, get(self.url(path))[0], path)
        self.assert_stops(running)
        self.assertEqual(["output"], os.listdir(self.directory))

    def test_daemon(self) -> None:
        """`twistd` alone is a daemon with files; SIGHUP opens the log again."""
        *twistd, name = self.daemon
        files = ["--pidfile", "our.pid", "--logfile", "our.log"]
        ended = self.ended([*twistd, *files, name, "--demo"], self.settings())
        self.assertEqual((0, "", ""), (ended.returncode, ended.stdout, ended.stderr))
        file = self.directory / "our.pid"
        pid = int(file.read_text())
        self.addCleanup(_kill, pid)
        until(lambda: scraped(self.url(), ALL_READ), "the first refreshes")
        second = self.ended([*self.daemon, "--demo"], self.settings())
        self.assertEqual(1, second.returncode, second)
        # twistd shows a hundred bytes of the reason and its class.
        reason = f"cannot listen on 127.0.0.1:{self.port}: Address already in use"
        self.assertIn(reason[:50], second.stdout + second.stderr)
        its_log, its_pid = self.directory / "twistd.log", self.directory / "twistd.pid"
        until(lambda: reason in its_log.read_text(), "a log line")
        until(lambda: not its_pid.exists(), "the end of the second")
        log, old = self.directory / "our.log", self.directory / "old.log"
        log.rename(old)
        os.kill(pid, signal.SIGHUP)
        until(log.exists, "a new log file")
        os.kill(pid, signal.SIGTERM)
        until(lambda: not _alive(pid), "the end of the daemon")
        self.assertFalse(file.exists())
        self.assertIn(" info stopped\n", log.read_text())
        for line in (old.read_text() + log.read_text()).splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+Z (info|warning|error) ")


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False


def _kill(pid: int) -> None:
    if _alive(pid):
        os.kill(pid, signal.SIGKILL)
