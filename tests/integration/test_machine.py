"""The program under an operator's signals, and on a machine that fails it."""

import os
import shlex
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping
from threading import Thread

from tests.integration.programs import (
    PATIENCE,
    SOON,
    Running,
    environment,
    get,
    program,
    scraped,
    start,
    until,
)
from tests.integration.test_operations import (
    GOOD,
    OperatedTestCase,
    Upstream,
    key_and_certificate,
)

UNREADABLE = "\napi_exporter_token_readable 0.0\n"
"""A line of the metrics."""


class MachineTestCase(OperatedTestCase):
    def serving(
        self, command: list[str], environ: Mapping[str, str] | None = None
    ) -> Running:
        """Return a running program that answers, by default with the demo network."""
        if environ is None:
            command, environ = [*command, "--demo"], self.settings()
        running = start(self, command, self.directory, environ)
        until(
            lambda: (
                get(self.url("/health"))[0] == 200 or running.process.poll() is not None
            ),
            "the start",
        )
        self.assertIsNone(running.process.poll(), running.said())
        return running

    def assert_ends(self, running: Running) -> None:
        """SIGTERM is a clean stop, and soon."""
        status, seconds = running.stop()
        self.assertEqual(0, status, running.said())
        self.assertLess(seconds, SOON)

    def sample(self, name: str) -> float:
        """The value of a metric of our own."""
        lines = get(self.url())[2].decode().splitlines()
        [line] = [line for line in lines if line.startswith(f"{name} ")]
        return float(line.split()[1])


class SignalTests(MachineTestCase):
    def test_stopped(self) -> None:
        """A clean stop says one line."""
        running = self.started([*self.exporter, "--demo"], self.settings())
        until(lambda: "reached the NetBird API" in running.said(), "the last line")
        before = len(running.said().splitlines())
        self.assert_ends(running)
        [line] = running.said().splitlines()[before:]
        self.assertTrue(line.endswith("Z info stopped"), line)

    def test_hangup(self) -> None:
        """Without a terminal SIGHUP changes nothing, says so, and looks at files."""
        upstream = Upstream(self, GOOD)
        token = self.directory / "token"
        for command in (self.exporter, self.twistd):
            token.write_text(GOOD)
            environ = self.reading(
                upstream.url,
                UPSTREAM_API_TOKEN_FILE=str(token),
                REFRESH_INTERVALS="peers=1h",
            )
            running = self.started(command, environ)
            self.assertEqual(1, self.sample("api_exporter_token_readable"))
            token.unlink()
            running.process.send_signal(signal.SIGHUP)
            until(lambda: scraped(self.url(), UNREADABLE), "the metric")
            said = running.said()
            self.assertIn("info SIGHUP: reopening the log file, ", said)
            self.assertIn("warning the token file cannot be read: ", said)
            self.assert_ends(running)

    def test_certificate(self) -> None:
        """SIGHUP changes over to a new certificate, and keeps the old for a bad one."""
        both, public = key_and_certificate(self.directory)
        address = f"ssl:{self.port}:privateKey={both}:interface=127.0.0.1"
        environ = self.settings(LISTEN_ADDRESS=address)
        running = start(self, [*self.exporter, "--demo"], self.directory, environ)
        until(lambda: " is at " in running.said(), "the start")
        where = ("127.0.0.1", self.port)

        def certificate() -> str:
            return ssl.get_server_certificate(where).strip()

        def in_file() -> str:
            return public.read_text().partition("-----BEGIN PRIVATE")[0].strip()

        first = in_file()
        self.assertEqual(first, certificate())
        key_and_certificate(self.directory)
        second = in_file()
        self.assertNotEqual(first, second)
        running.process.send_signal(signal.SIGHUP)
        until(lambda: certificate() == second, "the new certificate")
        both.write_text("nonsense")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: "certificate stays in use" in running.said(), "the warning")
        self.assertEqual(second, certificate())
        self.assert_ends(running)

    def at_a_terminal(self, *before: str) -> tuple[subprocess.Popen[bytes], int]:
        """An exporter in a window of its own; closing the number closes the window."""
        window, terminal = os.openpty()
        process = subprocess.Popen(
            [
                *(program("env"), "--default-signal=HUP"),  # may be ignored
                *(program("setsid"), "--ctty", *before, *self.exporter, "--demo"),
            ],
            cwd=self.directory,
            env=self.settings(),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(terminal)
        until(lambda: get(self.url("/health"))[0] == 200, "the start")
        return process, window

    def test_window(self) -> None:
        """A window that is closed leaves nothing behind, and that is a good end."""
        process, window = self.at_a_terminal()
        os.close(window)
        self.assertEqual(0, process.wait(PATIENCE))

    def test_nohup(self) -> None:
        """A program under nohup keeps running when its window is closed."""
        process, window = self.at_a_terminal(program("nohup"))
        os.close(window)
        time.sleep(1)
        self.assertIsNone(process.poll())
        self.assertEqual(200, get(self.url("/health"))[0])
        process.terminate()
        self.assertEqual(0, process.wait(PATIENCE))

    def test_log_file(self) -> None:
        """A log file that was moved is opened again, as a program and as a daemon."""
        log, old = self.directory / "our.log", self.directory / "old.log"
        *twistd, nodaemon, name = self.twistd
        files = ["--logfile", "our.log", "--pidfile", "our.pid", name, "--demo"]
        for command in ([*twistd, nodaemon, *files], [*twistd, *files]):
            for sign in (signal.SIGHUP, signal.SIGUSR1):
                log.unlink(missing_ok=True)
                running = start(self, command, self.directory, self.settings())
                until(lambda: get(self.url("/health"))[0] == 200, "the start")
                pid = int((self.directory / "our.pid").read_text())
                log.rename(old)
                os.kill(pid, sign)
                until(log.exists, f"a new file: {command} {sign}")
                os.kill(pid, signal.SIGTERM)
                until(lambda: "info stopped" in log.read_text(), "the last line")
                until(lambda: not (self.directory / "our.pid").exists(), "the end")
                self.assertIn(" is at http://", old.read_text())
                self.assertNotIn("Traceback", running.said())


class StreamsTests(MachineTestCase):
    def shell(self, line: str) -> list[str]:
        return ["bash", "-c", line]

    def test_closed(self) -> None:
        """Closed standard streams are no reason not to serve."""
        for command in (self.exporter, self.twistd):
            exporter = shlex.join([*command, "--demo"])
            for closed in ("<&- >&- 2>&-", ">&-", "2>&-"):
                line = self.shell(f"exec {exporter} {closed}")
                running = self.serving(line, self.settings(LOG_LEVEL="debug"))
                get(self.url("/metrics"))
                self.assert_ends(running)
                self.assertNotIn("Traceback", running.said())

    def test_closed_daemon(self) -> None:
        """Nor are they one for a daemon, whose parent has none either."""
        twistd = [word for word in self.twistd if word != "-n"]
        exporter = shlex.join([*twistd, "--demo"])
        line = self.shell(f"exec {exporter} <&- >&- 2>&-")
        self.assertEqual(0, self.ended(line, self.settings()).returncode)
        pid = int((self.directory / "twistd.pid").read_text())
        until(lambda: get(self.url("/health"))[0] == 200, "the start")
        os.kill(pid, signal.SIGTERM)
        until(lambda: not (self.directory / "twistd.pid").exists(), "the end")

    def test_reader_stops(self) -> None:
        """A reader that stops does not delay the exporter, and gets the lines later."""
        environ = self.settings(LOG_LEVEL="debug")
        process = subprocess.Popen(
            [*self.exporter, "--demo"],
            cwd=self.directory,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pipesize=4096,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        until(lambda: get(self.url("/health"))[0] == 200, "the start")
        dropped = "api_exporter_log_lines_dropped_total"
        until(lambda: self.sample(dropped) > 10, "lines that are dropped")
        self.assertTrue(os.get_blocking(process.stdout.fileno()))
        os.read(process.stdout.fileno(), 1_000_000)
        said = bytearray()

        def told() -> bool:
            get(self.url("/health"))  # which is a line
            said.extend(os.read(process.stdout.fileno(), 1_000_000))  # type: ignore[union-attr]
            return b"reader is too slow" in said

        until(told, "a line about those lines")
        self.assertRegex(bytes(said), rb"warning dropped \d+ log lines: ")
        until(lambda: self.sample(dropped) > 50, "another full pipe")
        begin = time.monotonic()
        process.terminate()
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertLess(time.monotonic() - begin, SOON)

    def test_head(self) -> None:
        """A reader that ends in the middle of a report causes no traceback."""
        for flag in ("--check", "--once"):
            exporter = shlex.join([*self.exporter, "--demo", flag])
            line = f"{exporter} | head -n 1; echo ${{PIPESTATUS[0]}}"
            ended = self.ended(self.shell(line), self.settings())
            self.assertEqual("", ended.stderr)
            self.assertEqual("141", ended.stdout.splitlines()[1], ended.stdout)

    def test_journal(self) -> None:
        """In the journal a line has its priority and no time of its own."""
        output = self.directory / "output"
        output.touch()
        file = output.stat()
        for stream, starts in (
            (f"{file.st_dev}:{file.st_ino}", ("<6>info ", "<4>warning ")),
            (f"{file.st_dev}:{file.st_ino + 1}", ("20", "20")),
        ):
            environ = self.settings(
                JOURNAL_STREAM=stream, UPSTREAM_API_TOKEN="nbp_x", LOG_FORMAT="text"
            )
            environ["UPSTREAM_API_URL"] = "http://127.0.0.1:1"
            running = self.serving(self.exporter, environ)
            self.assert_ends(running)
            lines = running.said().splitlines()
            for line in lines:
                self.assertTrue(line.startswith(starts), line)
            self.assertTrue(any(line.startswith(starts[1]) for line in lines))
        ended = subprocess.run(
            self.exporter,
            cwd=self.directory,
            env=environment(JOURNAL_STREAM=f"{file.st_dev}:{file.st_ino}"),
            stderr=output.open("a"),
            check=False,
        )
        self.assertEqual(os.EX_CONFIG, ended.returncode)
        self.assertIn("\n<3>api-exporter: UPSTREAM_API_URL ", output.read_text())


class StatusTests(MachineTestCase):
    def assert_status(self, status: int, environ: dict[str, str], *more: str) -> None:
        """The command ends with it, and says why in lines of its own."""
        for command in ([*self.exporter, *more], [*self.exporter, "--check", *more]):
            self.assert_refused(status, command, environ)

    def assert_refused(
        self, status: int, command: list[str], environ: dict[str, str]
    ) -> None:
        ended = self.ended(command, environ)
        self.assertEqual(status, ended.returncode, ended)
        for line in ended.stderr.splitlines():
            self.assertTrue(line.startswith("api-exporter: "), ended)

    def test_lasting(self) -> None:
        """An error that waiting cannot resolve ends with 78, as a daemon too."""
        wrong = self.directory / "wrong"
        wrong.write_text("A\n")
        self.assert_status(os.EX_CONFIG, environment(), "--config", str(wrong))
        for command in (self.twistd, [word for word in self.twistd if word != "-n"]):
            self.assert_refused(os.EX_CONFIG, command, environment())

    def test_wrong_description(self) -> None:
        """So does an endpoint that cannot be understood."""
        environ = self.settings(LISTEN_ADDRESS="tcp:a:b=c")
        self.assert_refused(os.EX_CONFIG, [*self.exporter, "--demo"], environ)

    def test_passing(self) -> None:
        """An empty or unreadable file ends with 1."""
        empty = self.directory / "empty"
        empty.touch(mode=0o600)
        for file in (empty, self.directory / "missing"):
            environ = self.reading(
                "http://127.0.0.1:1", UPSTREAM_API_TOKEN_FILE=str(file)
            )
            self.assert_status(1, environ)
            self.assert_status(1, environment(), "--config", str(file))


class FileTests(MachineTestCase):
    def test_token_is_no_file(self) -> None:
        """A token file that becomes a pipe or a device does not block the exporter."""
        upstream = Upstream(self, GOOD)
        token = self.directory / "token"
        for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
            token.write_text(GOOD)
            environ = self.reading(
                upstream.url,
                UPSTREAM_API_TOKEN_FILE=str(token),
                REFRESH_INTERVALS="peers=1s",
            )
            running = self.started(self.exporter, environ)
            token.unlink()
            make(token)
            until(lambda: scraped(self.url(), UNREADABLE), "the metric")
            self.assertIn("the file is not a regular file", running.said())
            self.assertTrue(scraped(self.url(), "netbird_api_up 1.0"))
            self.assert_ends(running)
            token.unlink()

    def test_pipe(self) -> None:
        """The configuration may come through a pipe."""
        config = self.directory / "config"
        config.write_text(f"LISTEN_ADDRESS=127.0.0.1:{self.port}\n")
        for command in (self.exporter, self.twistd):
            exporter = shlex.join([*command, "--demo", "--config"])
            line = ["bash", "-c", f"exec {exporter} <(cat config)"]
            self.assert_ends(self.serving(line, environment()))


HANGING = """
import socket, sys, time
resolve = socket.getaddrinfo
def hang(host, *rest, **more):
    if host == "hangs.example":
        time.sleep(60)
    return resolve(host, *rest, **more)
socket.getaddrinfo = hang
from api_exporter.cli import main
main()
"""
"""The exporter on a machine whose name server does not answer."""


class HangingTests(MachineTestCase):
    def test_name_server(self) -> None:
        """A name server that does not answer is not waited for."""
        environ = self.reading("http://hangs.example:1", UPSTREAM_API_TOKEN=GOOD)
        python = [str(self.bin / "python"), "-c", HANGING]
        running = self.serving(python, environ)
        until(
            lambda: self.sample("api_exporter_reactor_threads_in_use") > 0, "a lookup"
        )
        self.assert_ends(running)

    def test_upstream_stays(self) -> None:
        """An upstream that does not end its side of a connection is not waited for."""
        both, public = key_and_certificate(self.directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        kept = []

        def serve() -> None:
            """Answer each connection's first request; then never look at it again."""
            while True:
                try:
                    client, _ = listening.accept()
                    shaken = context.wrap_socket(client, server_side=True)
                    shaken.recv(10_000)
                    shaken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
                except OSError:
                    return
                kept.append(shaken)

        Thread(target=serve, daemon=True).start()
        url = f"https://localhost:{listening.getsockname()[1]}"
        environ = self.reading(url, UPSTREAM_API_TOKEN=GOOD, SSL_CERT_FILE=str(public))
        running = self.serving(self.exporter, environ)
        until(lambda: len(kept) > 1, "requests")
        self.assert_ends(running)
        for connection in kept:
            connection.close()


class HealthTests(MachineTestCase):
    def test_quick(self) -> None:
        """`--health` asks where the settings say, and loads nothing that is slow."""
        self.serving(self.exporter)
        ended = self.ended([*self.exporter, "--health"], self.settings())
        url = self.url("/health")
        self.assertEqual((0, f"OK: {url}: 200\n"), (ended.returncode, ended.stdout))
        code = (
            "import sys; from api_exporter.checking import health; print(*sys.modules)"
        )
        loaded = self.ended([str(self.bin / "python"), "-c", code]).stdout.split()
        for slow in ("twisted", "msgspec", "incremental", "idna", "asyncio"):
            self.assertNotIn(slow, loaded)
