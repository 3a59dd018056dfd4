"""The program as an operator installs, starts and stops it: a wheel and real twistd."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from unittest import SkipTest

from twisted.trial.unittest import TestCase

from tests.integration.programs import (
    ALL_READ,
    PATIENCE,
    ROOT,
    SOON,
    Running,
    environment,
    free_port,
    get,
    program,
    scraped,
    start,
    until,
)


@cache
def installed() -> Path:
    """A virtual environment that holds the built wheel, and of the tree nothing."""
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


class DaemonTests(TestCase):
    def setUp(self) -> None:
        self.venv = installed()
        self.directory = Path(self.mktemp())
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.demo = environment(
            LISTEN_ADDRESS=f"127.0.0.1:{self.port}", DEMO_PEERS="50"
        )

    def command(self, *arguments: str) -> list[str]:
        """Twistd itself, by the interpreter that has the wheel."""
        code = "from twisted.scripts.twistd import run; run()"
        return [str(self.venv / "bin/python"), "-c", code, *arguments]

    def run_(
        self, command: list[str], environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=environ or environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def url(self, path: str = "/metrics") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def started(self, command: list[str]) -> Running:
        """A running exporter that has read everything once."""
        running = start(self, command, self.directory, self.demo)
        until(
            lambda: scraped(self.url(), ALL_READ) or running.process.poll() is not None,
            "the first round",
        )
        self.assertIsNone(running.process.poll(), running.said())
        return running

    def test_listed(self) -> None:
        """An installed wheel shows the program in twistd's help."""
        self.assertIn("api-exporter", self.run_(self.command("--help")).stdout)

    def test_version(self) -> None:
        """Both commands print the version and need no setting for it."""
        for command in (
            self.command("api-exporter", "--version"),
            [str(self.venv / "bin/api-exporter"), "--version"],
        ):
            ended = self.run_(command)
            self.assertEqual(0, ended.returncode)
            self.assertRegex(ended.stdout, r"^api-exporter \d+\.\d+\.\d+")

    def test_console_script(self) -> None:
        """The console script serves, and SIGTERM ends it soon, well."""
        running = self.started([str(self.venv / "bin/api-exporter"), "--demo"])
        until(lambda: "reached the NetBird API" in running.said(), "the second line")
        where, reached, *_ = running.said().splitlines()
        self.assertIn(f"is at http://127.0.0.1:{self.port}/ and its metrics", where)
        self.assertIn("reached the NetBird API", reached)
        self.assertTrue(scraped(self.url(), 'netbird_api_peers{connected="true"}'))
        self.assertEqual(200, get(self.url("/health"))[0])
        self.assertEqual(200, get(self.url("/"))[0])
        self.assertEqual(404, get(self.url("/nothing"))[0])
        status, seconds = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertLess(seconds, SOON)
        self.assertEqual(["output"], os.listdir(self.directory))

    def test_foreground(self) -> None:
        """`twistd -n` serves, logs to its streams and removes its pid file."""
        running = self.started(self.command("-n", "api-exporter", "--demo"))
        self.assertIn(f"http://127.0.0.1:{self.port}/metrics", running.said())
        self.assertEqual(0, running.stop()[0])
        self.assertEqual(["output"], os.listdir(self.directory))

    def test_daemon(self) -> None:
        """`twistd` alone is a daemon with a pid file and a log file in our format."""
        files = ["--pidfile", "our.pid", "--logfile", "our.log"]
        ended = self.run_(self.command(*files, "api-exporter", "--demo"), self.demo)
        self.assertEqual((0, "", ""), (ended.returncode, ended.stdout, ended.stderr))
        pid = int((self.directory / "our.pid").read_text())
        self.addCleanup(_kill, pid)
        until(lambda: scraped(self.url(), ALL_READ), "the first round")
        os.kill(pid, signal.SIGTERM)
        until(lambda: not _alive(pid), "the end of the daemon")
        self.assertFalse((self.directory / "our.pid").exists())
        for line in (self.directory / "our.log").read_text().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+Z (info|warning|error) ")

    def test_gzip_and_head(self) -> None:
        """The compressed page and the answer to HEAD are what curl expects."""
        curl = program("curl")
        self.started(self.command("-n", "api-exporter", "--demo"))
        plain = self.run_([curl, "-sS", self.url()]).stdout
        unzipped = self.run_([curl, "-sS", "--compressed", self.url()]).stdout
        self.assertEqual(
            plain.partition("# HELP api_exporter")[0],
            unzipped.partition("# HELP api_exporter")[0],
        )
        head = self.run_([curl, "-sS", "-I", self.url()]).stdout
        self.assertRegex(head, r"Content-Length: \d{4,}")

    def assert_refused(self, environ: dict[str, str], reason: str) -> None:
        """In both modes: status 1, the reason, no traceback, no pid file, no hang."""
        for mode in (["-n"], []):
            ended = self.run_(self.command(*mode, "api-exporter", "--demo"), environ)
            self.assertEqual(1, ended.returncode, ended)
            # twistd shows a hundred bytes of a daemon's reason and its class.
            shown = reason if mode else reason[:50]
            self.assertIn(shown, ended.stdout + ended.stderr)
            self.assertNotIn("Traceback", ended.stdout + ended.stderr)
            if mode:
                lines = (ended.stdout + ended.stderr).splitlines()
                self.assertEqual(1, sum("error" in line for line in lines), lines)
            else:
                # The daemon reports to the terminal first, then logs and cleans up.
                until(lambda: reason in self.logged(), "a log line")
            until(lambda: not self.has_pid_file(), "a clean end")

    def logged(self) -> str:
        return (self.directory / "twistd.log").read_text()

    def has_pid_file(self) -> bool:
        return (self.directory / "twistd.pid").exists()

    def test_port_in_use(self) -> None:
        """A port that is taken is named in one line."""
        with socket.create_server(("127.0.0.1", self.port)):
            self.assert_refused(
                self.demo,
                f"cannot listen on 127.0.0.1:{self.port}: Address already in use",
            )

    def test_unresolvable(self) -> None:
        """A host that does not exist is named in one line."""
        environ = {**self.demo, "LISTEN_ADDRESS": "no-such-host.invalid:8080"}
        self.assert_refused(environ, "cannot listen on no-such-host.invalid:8080: ")

    def test_privileged_port(self) -> None:
        """A port that needs a privilege is named in one line, with the hint."""
        setpriv = program("setpriv")
        lowest = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
        if int(lowest.read_text()) <= 80 or os.geteuid() != 0:
            raise SkipTest("missing privilege: to drop the one for low ports")
        environ = {**self.demo, "LISTEN_ADDRESS": "127.0.0.1:80"}
        without = [setpriv, "--bounding-set", "-net_bind_service"]
        ended = self.run_(
            [*without, *self.command("-n", "api-exporter", "--demo")], environ
        )
        self.assertEqual(1, ended.returncode)
        self.assertIn(
            "LISTEN_ADDRESS: cannot listen on 127.0.0.1:80: Permission denied;"
            " ports below 1024 need a privilege",
            ended.stderr,
        )
        self.assertNotIn("Traceback", ended.stderr)

    def test_settings(self) -> None:
        """All wrong settings are named at once, before anything else happens."""
        environ = environment(
            UPSTREAM_API_URL="ftp://x",
            UPSTREAM_API_TOKEN="nbp canary",
            HTTP_TIMEOUT="5",
        )
        for command in (
            self.command("api-exporter"),
            self.command("-n", "api-exporter"),
            [str(self.venv / "bin/api-exporter")],
        ):
            ended = self.run_(command, environ)
            self.assertEqual((os.EX_CONFIG, ""), (ended.returncode, ended.stdout))
            lines = ended.stderr.splitlines()
            self.assertEqual(3, len(lines), lines)
            for line, name in zip(
                lines,
                ("UPSTREAM_API_URL", "UPSTREAM_API_TOKEN", "HTTP_TIMEOUT"),
                strict=True,
            ):
                self.assertTrue(line.startswith(f"api-exporter: {name}: "), line)
            self.assertNotIn("canary", ended.stderr)
            self.assertEqual([], os.listdir(self.directory))

    def test_unknown_option(self) -> None:
        """A wrong option is one line and status 78."""
        ended = self.run_([str(self.venv / "bin/api-exporter"), "--nonsense"])
        self.assertEqual((os.EX_CONFIG, ""), (ended.returncode, ended.stdout))
        self.assertEqual(1, len(ended.stderr.splitlines()), ended.stderr)
        self.assertIn("--nonsense", ended.stderr.replace("option ", "option --"))

    def test_log_file_not_writable(self) -> None:
        """A log file that cannot be written is named in one line."""
        ended = self.run_(
            self.command("--logfile", "/nowhere/x.log", "api-exporter", "--demo"),
            self.demo,
        )
        self.assertEqual(1, ended.returncode)
        self.assertIn("/nowhere", ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)

    def test_upstream_down(self) -> None:
        """An upstream that is down is no start-up error: we run, say so, recover."""
        upstream = free_port()
        environ = environment(
            UPSTREAM_API_URL=f"http://127.0.0.1:{upstream}",
            UPSTREAM_API_TOKEN="nbp_canary",
            LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
            API_RETRY_ATTEMPTS="1",
            REFRESH_INTERVALS="peers=1s",
        )
        running = start(
            self, [str(self.venv / "bin/api-exporter")], self.directory, environ
        )
        until(lambda: scraped(self.url(), "netbird_api_up 0.0"), "the first failure")
        self.assertEqual(200, get(self.url("/health"))[0])
        self.assertIn("warning cannot reach the NetBird API", running.said())
        with socket.create_server(("127.0.0.1", upstream)) as server:
            server.settimeout(PATIENCE)
            until(lambda: _answered(server), "a request")
        self.assertNotIn("canary", running.said())
        self.assertEqual(0, running.stop()[0])


def _answered(server: socket.socket) -> bool:
    """Answer one request as an upstream without peers; whether it was for the peers."""
    connection, _ = server.accept()
    with connection:
        request = connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: 2\r\nConnection: close\r\n\r\n[]"
        )
    return request.startswith(b"GET /api/peers ")


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False


def _kill(pid: int) -> None:
    if _alive(pid):
        os.kill(pid, signal.SIGKILL)
