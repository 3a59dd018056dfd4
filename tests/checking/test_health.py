"""`--health`, against real sockets on this machine."""

import io
import os
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking import health
from api_exporter.checking.health import HEALTH_USAGE, main, own_url, parse, running_at
from api_exporter.settings.addresses import parse_addresses
from api_exporter.settings.errors import ConfigurationError
from tests.integration.exporter import key_and_certificate
from tests.integration.programs import free_port

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class HealthTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()  # its name is short enough for a socket
        self.addCleanup(made.cleanup)
        self.directory = Path(made.name)

    def asked(self, *arguments: str, **environ: str) -> tuple[int, str]:
        """Return the exit status and the printed line."""
        printed = io.StringIO()
        self.patch(sys, "stdout", printed)
        status = main(["--health", *arguments], environ)
        [line] = printed.getvalue().splitlines()
        return status, line

    def serve(
        self, listening: socket.socket, talk: Callable[[socket.socket], None]
    ) -> None:
        """Accept one client in a thread."""

        def accept() -> None:
            client, _ = listening.accept()
            with client:
                talk(client)

        thread = Thread(target=accept, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(listening.close)

    def answering(self, listening: socket.socket, answer: bytes) -> None:
        def talk(client: socket.socket) -> None:
            self.heard = client.recv(10_000)
            client.sendall(answer)

        self.serve(listening, talk)

    def answered(self, answer: bytes) -> int:
        """Return the port on which the next client gets this response."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.answering(listening, answer)
        return int(listening.getsockname()[1])

    def secured(self, version: ssl.TLSVersion, demand: ssl.VerifyMode) -> int:
        """Return the port of a TLS server that may require a client certificate."""
        both, public = key_and_certificate(self.directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        context.load_verify_locations(public)
        context.maximum_version, context.verify_mode = version, demand

        def talk(client: socket.socket) -> None:
            try:
                with context.wrap_socket(client, server_side=True) as shaken:
                    shaken.recv(10_000)
                    shaken.sendall(GOOD)
            except ssl.SSLError:
                pass

        listening = socket.create_server(("127.0.0.1", 0))
        self.serve(listening, talk)
        return int(listening.getsockname()[1])


class AnswerTests(HealthTestCase):
    def test_good(self) -> None:
        """200 is OK, with status 0; the page is `/health` unless another is given."""
        for arguments, page in (
            ([], "/health"),
            (["/ready", "5"], "/ready"),
            (["{url}/ready?a"], "/ready?a"),
        ):
            port = self.answered(GOOD)
            url = f"http://127.0.0.1:{port}"
            given = [argument.format(url=url) for argument in arguments]
            found = self.asked(*given, LISTEN_ADDRESS=f":{port}")
            self.assertEqual((0, f"OK: {url}{page}: 200"), found)
            start = f"GET {page} HTTP/1.1\r\n".encode()
            self.assertTrue(self.heard.startswith(start), self.heard)

    def test_bad(self) -> None:
        """Another status, or no HTTP or TLS, is critical, with status 2."""
        text = b"220 mail.example ESMTP\r\n"
        for prefix, answer, words in (
            ("", b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", "503"),
            ("", text, r"BadStatusLine\('220 mail.example ESMTP\\r"),
            ("", b"", r"RemoteDisconnected\("),
            ("ssl:", text, r"[A-Z_]+$"),
        ):
            port = self.answered(answer)
            host = "" if prefix else "127.0.0.1:"
            status, line = self.asked(LISTEN_ADDRESS=f"{prefix}{host}{port}")
            scheme = "https" if prefix else "http"
            self.assertEqual(2, status)
            start = f"CRITICAL: {scheme}://127.0.0.1:{port}/health: "
            self.assertRegex(line, f"^{start}{words}")

    def test_nobody(self) -> None:
        """A refused connection and a silent server are critical."""
        for address in (f":{free_port()}", "h" * 70 + ".example:80"):
            status, line = self.asked(LISTEN_ADDRESS=address)
            self.assertEqual((2, "CRITICAL"), (status, line.partition(":")[0]))
        status, line = self.asked(LISTEN_ADDRESS=f"127.0.0.1:{free_port()}")
        self.assertTrue(line.endswith(": Connection refused"), line)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
            line = f"CRITICAL: {url}: no response within 0.2 s"
            self.assertEqual((2, line), self.asked(url, "0.2"))

    def test_unix(self) -> None:
        """A socket in the file system is requested as well."""
        for page in ("/health", "/ready"):
            path = self.directory / f"{page[1:]}.sock"
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(str(path))
            listening.listen()
            self.answering(listening, GOOD)
            found = self.asked(page, LISTEN_ADDRESS=f"unix:{path}:mode=660")
            self.assertEqual((0, f"OK: unix:{path}: 200"), found)
            self.assertTrue(self.heard.startswith(f"GET {page} ".encode()))

    def test_tls(self) -> None:
        """TLS is not verified; a required client certificate is OK."""
        required = "the exporter runs and requires a client certificate"
        for version, demand, words in (
            (ssl.TLSVersion.TLSv1_3, ssl.CERT_NONE, "200"),
            (ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED, required),
            (ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED, required),
        ):
            port = self.secured(version, demand)
            self.assertEqual(
                (0, f"OK: https://127.0.0.1:{port}/health: {words}"),
                self.asked(LISTEN_ADDRESS=f"ssl:{port}:privateKey=/x.pem"),
            )


class WhereTests(HealthTestCase):
    def test_encrypted(self) -> None:
        """With a web configuration, HTTP is tried first, then HTTPS."""
        alert = b"\x15\x03\x01\x00\x02\x02\x46"
        for answer, expected in ((GOOD, "OK: http"), (alert, "CRITICAL: https")):
            port = self.answered(answer)
            address = f"127.0.0.1:{port}"
            status, line = self.asked(
                "/health", "1", LISTEN_ADDRESS=address, WEB_CONFIG_FILE="/none"
            )
            self.assertEqual(2 * (answer == alert), status)
            self.assertTrue(line.startswith(f"{expected}://{address}/health: "), line)

    def test_addresses(self) -> None:
        """The first usable address is requested, always from this machine."""
        for text, expected in (
            ("", "http://127.0.0.1:8080/health"),
            (":9000", "http://127.0.0.1:9000/health"),
            ("0.0.0.0:1", "http://127.0.0.1:1/health"),
            ("[::]:1", "http://[::1]:1/health"),
            ("[fd00::1]:1,:2", "http://[fd00::1]:1/health"),
            ("name.example:1", "http://name.example:1/health"),
            ("tcp:1", "http://127.0.0.1:1/health"),
            ("tcp:port=1:interface=10.0.0.1", "http://10.0.0.1:1/health"),
            (r"tcp:1:interface=\:\:1", "http://[::1]:1/health"),
            ("tcp6:1", "http://[::1]:1/health"),
            ("ssl:1:privateKey=/a=b.pem", "https://127.0.0.1:1/health"),
            ("unix:/run/x.sock:mode=660", "unix:/run/x.sock"),
            (r"unix:address=/run/a\:b", "unix:/run/a:b"),
            ("unix:address=/run/a=b", "unix:/run/a=b"),
            ("systemd:domain=INET:index=0, :3", "http://127.0.0.1:3/health"),
            ("tcp:nonsense,:3", "http://127.0.0.1:3/health"),
        ):
            self.assertEqual(expected, own_url({"LISTEN_ADDRESS": text}))
        self.assertEqual("http://127.0.0.1:8080/health", own_url({}))

    def test_file(self) -> None:
        """The settings are the exporter's: from the environment, then from a file."""
        config = self.directory / "config"
        config.write_text("LISTEN_ADDRESS=127.0.0.1:1\n")
        for arguments in (["-c", str(config)], [f"--config={config}"]):
            status, line = self.asked(*arguments)
            self.assertEqual(2, status)
            self.assertIn("http://127.0.0.1:1/health", line)
            _, line = self.asked(*arguments, LISTEN_ADDRESS="127.0.0.1:2")
            self.assertIn("http://127.0.0.1:2/health", line)

    def test_seconds(self) -> None:
        """A request has ten seconds, unless the command states others."""
        for words, seconds in (([], 10.0), (["", "2.5"], 2.5)):
            self.assertEqual(seconds, parse(["--health", *words], {})[1])

    def test_cannot_ask(self) -> None:
        """An impossible request is critical, in one line with the reason."""
        config = self.directory / "config"
        config.write_text("A\nB\n")
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        equals, systemd = "NAME=value is missing its =; ", "systemd:domain=INET:index=0"
        wrong = (["--nonsense"], ["--config"], ["--config="], ["a", "b", "c"])
        for arguments, words in (
            (["--config", str(config)], f"{config}:1: A: {equals}"),
            (["--config", str(pipe)], f"{pipe}: the file is not a regular file"),
            *((arguments, HEALTH_USAGE) for arguments in wrong),
            (["http://127.0.0.1:1/", "soon"], "'soon' is not a number of seconds; "),
            (["ftp://127.0.0.1/"], "the URL must be http://host:port/path, or https"),
            (["http://u:p@127.0.0.1/"], "the URL must be http://host:port/path"),
            (["health"], "the URL must be http://host:port/path, or https; "),
            (["http://a:b/"], "the URL is not valid: "),
            (["http://127.0.0.1:1/", "nbp_x"], "'nbp_…' is not a number of seconds"),
            (["http://a/\u00e4"], "the URL contains a space or a non-ASCII character"),
            (["http://a b/"], "the URL contains a space or a non-ASCII character"),
        ):
            status, line = self.asked(*arguments)
            start = f"CRITICAL: {words}"
            self.assertEqual((2, start), (status, line[: len(start)]))
        words = "has no address that --health can request: add a URL"
        error = self.assertRaises(
            ConfigurationError, own_url, {"LISTEN_ADDRESS": systemd}
        )
        self.assertEqual(f"LISTEN_ADDRESS={systemd} {words}", str(error))
        line = "CRITICAL: LISTEN_ADDRESS is not allowed: write host:port"
        self.assertEqual((2, line), self.asked(LISTEN_ADDRESS="?"))


class RunningTests(HealthTestCase):
    def running(self, body: bytes) -> bool:
        self.patch(health, "RUNNING_SECONDS", 0.5)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        port = self.answered(head + body)
        url = running_at(parse_addresses(f"127.0.0.1:{port}"))
        self.assertIn(url, ("", f"http://127.0.0.1:{port}"))
        return bool(url)

    def test_running(self) -> None:
        """An exporter answers `/health` as one; another program does not."""
        self.assertTrue(self.running(b'{"status": "ok"}'))
        for body in (b"ok", b"[]", b'{"status": "fail"}', b"\x1b[2J", b""):
            self.assertFalse(self.running(body), body)

    def test_nothing(self) -> None:
        """Without an answer, or an address to ask, no exporter runs."""
        for address in (f"127.0.0.1:{free_port()}", "systemd:domain=INET:index=0"):
            self.assertEqual("", running_at(parse_addresses(address)))
