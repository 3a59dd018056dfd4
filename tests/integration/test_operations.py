"""The program in its operator's hands: configured, refused, stopped."""

import os
import re
import signal
import socket
import stat
import time
from collections.abc import Mapping

from tests.integration.exporter import (
    GOOD,
    ExporterTestCase,
    Upstream,
    key_and_certificate,
)
from tests.integration.programs import (
    PATIENCE,
    Running,
    environment,
    get,
    scraped,
    until,
)


class StopTests(ExporterTestCase):
    def scraped_slowly(self) -> tuple[Running, socket.socket, bytes]:
        """Return an exporter, a client amid its metrics, and what the client has."""
        # The page is larger than the system's buffers.
        running = self.started(environ=self.settings(DEMO_PEERS="4000"))
        client = socket.socket()
        self.addCleanup(client.close)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        return running, client, client.recv(1000)

    def test_slow_scrape(self) -> None:
        """A client that reads slowly gets the whole page before the end."""
        running, client, received = self.scraped_slowly()
        running.process.send_signal(signal.SIGTERM)
        head = received.partition(b"\r\n\r\n")[0]
        size = 0
        while chunk := client.recv(65536):
            size += len(chunk)
            time.sleep(0.001)  # the client is slow
        [length] = re.findall(rb"Content-Length: (\d+)", head)
        self.assertGreater(int(length), 1_000_000)
        self.assertEqual(int(length), size + len(received) - len(head) - 4)
        self.assertEqual(0, running.process.wait(PATIENCE), running.said())
        self.assertNotIn("Traceback", running.said())


class ConfigurationTests(ExporterTestCase):
    def test_loaded(self) -> None:
        """Settings of the file apply, those of libraries too; the environment wins."""
        both, public = key_and_certificate(self.directory)
        upstream = Upstream(self, GOOD, pem=both)
        (self.directory / "config").write_text(
            f"# ours\n\nexport UPSTREAM_API_URL='{upstream.url}'\n"
            f'UPSTREAM_API_TOKEN="{GOOD}"\nMETRICS_PATH=/other\n'
            f"LISTEN_ADDRESS=127.0.0.1:{self.port}\nSSL_CERT_FILE={public}\n"
        )
        environ = environment(METRICS_PATH="/metrics")
        environ.pop("SSL_CERT_FILE", None)
        for command in (self.exporter, self.twistd):
            running = self.started([*command, "--config", "config"], environ)
            self.assertTrue(scraped(self.url(), "netbird_api_up 1.0"))
            file = self.directory / "config"
            line = f"warning {file} is readable by every user of this machine"
            self.assertEqual(1, running.said().count(line), running.said())
            self.assertEqual(404, get(self.url("/other"))[0])
            self.assert_stops(running)


class RefusedTests(ExporterTestCase):
    """Starts that fail: the status, one line for each error, and nothing else."""

    def assert_refused(
        self,
        command: list[str],
        environ: Mapping[str, str] | None,
        status: int,
        *errors: str,
    ) -> None:
        files = sorted(os.listdir(self.directory))
        ended = self.ended(command, environ)
        message = f"{command}: {ended}"
        self.assertEqual((status, ""), (ended.returncode, ended.stdout), message)
        lines = ended.stderr.splitlines()
        self.assertEqual(len(errors), len(lines), message)
        for error, line in zip(errors, lines, strict=True):
            self.assertTrue(line.startswith("api-exporter: "), message)
            self.assertIn(error, line, message)
        self.assertNotIn(GOOD, ended.stderr)
        self.assertNotIn("canary", ended.stderr)
        self.assertEqual(files, sorted(os.listdir(self.directory)), message)

    def test_settings(self) -> None:
        """All errors are reported at once, by each command; 1 means that a retry may
        help, 78 that it cannot.
        """
        empty, wrong = self.directory / "empty", self.directory / "wrong"
        empty.touch(mode=0o600)
        token = self.directory / "token"
        token.write_text(GOOD)
        wrong.write_text(f"A=1\nUPSTREAM_API_TOKEN={GOOD} # mine\nB\n")
        wrong.chmod(0o600)
        file = "UPSTREAM_API_TOKEN_FILE"
        url = {"UPSTREAM_API_URL": "http://127.0.0.1:1"}
        one, *reports = ([*self.exporter, *x] for x in ([], ["--check"], ["--once"]))
        bad = {"UPSTREAM_API_URL": "ftp://x", "UPSTREAM_API_TOKEN": "nbp canary"}
        bad["HTTP_TIMEOUT"] = "5"
        both_tokens = {**url, "UPSTREAM_API_TOKEN": GOOD, file: str(token)}
        output = {**url, "UPSTREAM_API_TOKEN": GOOD, "EVENTS_FILE": "-"}
        output["EVENTS_CURSOR_FILE"] = "x"
        listen = {"LISTEN_ADDRESS": "tcp:a:b=c"}
        cannot_listen = "LISTEN_ADDRESS: cannot listen on tcp:a:b=c: "
        wrong_lines = "wrong:2: UPSTREAM_API_TOKEN: ", "wrong:3: B: "
        gone, no_config = "(No such file or directory)", "missing: No such file"
        no_output = "EVENTS_FILE: a daemon has no standard output"
        for status, options, given, errors, commands in (
            (78, "", bad, bad, (one, *reports, self.twistd, self.daemon)),
            (78, "", both_tokens, ["are both set"], [one]),
            (1, "", {**url, file: "missing"}, [gone], [self.twistd]),
            (78, "", {**url, file: "."}, ["(the file is not a regular file)"], [one]),
            (1, "", {**url, file: "empty"}, [f"{file}: "], reports[:1]),
            (78, "--config wrong", {}, wrong_lines, [one]),
            (1, "--config missing", {}, [no_config], (reports[1], self.twistd)),
            (78, "--strict", {}, ["--strict requires --check"], [one]),
            (78, "--demo", listen, [cannot_listen], [one]),
            (78, "--demo", {"WEB_CONFIG_FILE": "wrong"}, ["WEB_CONFIG_FILE: "], [one]),
            (78, "", output, [no_output], [self.daemon]),
        ):
            for command in commands:
                self.assert_refused(
                    [*command, *options.split()], environment(**given), status, *errors
                )

    def test_daemon(self) -> None:
        """A daemon reports to its terminal that it cannot listen, and cleans up."""
        with socket.create_server(("127.0.0.1", self.port)):
            ended = self.ended([*self.daemon, "--demo"], self.settings())
        self.assertEqual(1, ended.returncode, ended)
        # twistd shows a hundred bytes of the reason and its class.
        reason = f"cannot listen on 127.0.0.1:{self.port}: Address already in use"
        self.assertIn(reason[:50], ended.stdout + ended.stderr)
        log, pid = self.directory / "twistd.log", self.directory / "twistd.pid"
        until(lambda: reason in log.read_text(), "a log line")
        until(lambda: not pid.exists(), "the end")


class ListenTests(ExporterTestCase):
    def listening(self, address: str) -> Running:
        """Return an exporter that listens there."""
        return self.saying(" is at ", self.settings(LISTEN_ADDRESS=address))

    def test_unix(self) -> None:
        """Other users cannot connect to a socket unless its mode allows it. The end
        removes the socket; a start replaces a killed process's, and no other.
        """
        path = self.directory / "exporter.sock"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        path.with_suffix(".sock.lock").symlink_to(str(os.getpid()))
        for sign, option, mode in (
            (signal.SIGTERM, "", 0o660),
            (signal.SIGKILL, ":mode=600", 0o600),
            (signal.SIGTERM, ":mode=666", 0o666),
        ):
            address = f"unix:{path}{option}"
            running = self.listening(address)
            self.assertEqual(mode, stat.S_IMODE(path.stat().st_mode))
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                self.assertIn(b" 200 OK", client.recv(65536))
            self.assertIn(f"unix:{path}", running.said())
            environ = self.settings(LISTEN_ADDRESS=address)
            second = self.ended([*self.exporter, "--demo"], environ)
            self.assertEqual(1, second.returncode)
            self.assertIn(f"listen on {address}: Address already in", second.stderr)
            status, _ = running.stop(sign)
            self.assertEqual(sign == signal.SIGTERM, not path.exists())
            self.assertIn(status, (0, -signal.SIGKILL))


class LogTests(ExporterTestCase):
    def test_debug(self) -> None:
        """Attempts, refreshes and requests are lines."""
        running = self.started(environ=self.settings(LOG_LEVEL="debug"))
        for line in (
            r"debug requested api/peers attempt=1 status=200 bytes=\d+ duration",
            r"debug refreshed peers records=\d+ rejected=0 duration_seconds=0\.\d+",
            r"debug GET /metrics status=200 client=127\.0\.0\.1 bytes=\d+",
        ):
            until(lambda line=line: bool(re.search(line, running.said())), line)  # type: ignore[misc]
        for line in running.said().splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT[\d:.]+Z (debug|info|warning) ")
        self.assert_stops(running)
