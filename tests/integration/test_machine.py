"""The program under an operator's signals, and on a machine that fails it."""

import os
import signal
import socket
import ssl
import subprocess
import time
from threading import Thread

from tests.integration.exporter import GOOD, ExporterTestCase, key_and_certificate
from tests.integration.programs import PATIENCE, SOON, get, program, start, until


class SignalTests(ExporterTestCase):
    def test_window(self) -> None:
        """Closing its window ends the program with status 0."""
        window, terminal = os.openpty()
        process = subprocess.Popen(
            [
                *(program("env"), "--default-signal=HUP"),  # may be ignored
                *(program("setsid"), "--ctty", *self.exporter, "--demo"),
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
        os.close(window)
        self.assertEqual(0, process.wait(PATIENCE))

    def test_log_file(self) -> None:
        """A moved log file is opened again, in the foreground and as a daemon."""
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


class StreamsTests(ExporterTestCase):
    def test_reader_stops(self) -> None:
        """A reader that stops does not delay the exporter, and gets the lines later."""
        process = subprocess.Popen(
            [*self.exporter, "--demo"],
            cwd=self.directory,
            env=self.settings(LOG_LEVEL="debug"),
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
        received = bytearray()

        def reported() -> bool:
            get(self.url("/health"))  # which is a line
            received.extend(os.read(process.stdout.fileno(), 1_000_000))  # type: ignore[union-attr]
            return b"reader is too slow" in received

        until(reported, "a line about those lines")
        self.assertRegex(bytes(received), rb"warning dropped \d+ log lines: ")
        until(lambda: self.sample(dropped) > 50, "another full pipe")
        begin = time.monotonic()
        process.terminate()
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertLess(time.monotonic() - begin, SOON)


class HangingTests(ExporterTestCase):
    def test_upstream_stays(self) -> None:
        """The upstream does not close its side of a TLS connection."""
        both, public = key_and_certificate(self.directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        kept = []

        def serve() -> None:
            """Answer each connection's first request; then ignore the connection."""
            while True:
                try:
                    client, _ = listening.accept()
                    secured = context.wrap_socket(client, server_side=True)
                    secured.recv(10_000)
                    secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
                except OSError:
                    return
                kept.append(secured)

        Thread(target=serve, daemon=True).start()
        url = f"https://localhost:{listening.getsockname()[1]}"
        environ = self.reading(url, UPSTREAM_API_TOKEN=GOOD, SSL_CERT_FILE=str(public))
        running = self.serving(self.exporter, environ)
        until(lambda: len(kept) > 1, "requests")
        self.assert_stops(running)
        for connection in kept:
            connection.close()
