"""How the tests start programs: with reserved ports, and errors with a reason."""

import socket
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.programs import becomes, free_port, start, until

SAYS = "import sys, time; print('why it is not', file=sys.stderr, flush=True); {}"


class PortTests(SynchronousTestCase):
    def test_kept(self) -> None:
        """A port is reserved, but servers can listen on it."""
        for host in ("127.0.0.1", "::1"):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            ports = [free_port(host) for _ in range(100)]
            self.assertEqual(100, len(set(ports)))
            with socket.socket(family) as other, self.assertRaises(OSError):
                other.bind((host, ports[0]))
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection((host, ports[0])).close()
            with socket.create_server((host, ports[0]), family=family):
                socket.create_connection((host, ports[0])).close()
                with self.assertRaises(OSError):
                    socket.create_server((host, ports[0]), family=family).close()


class WaitingTests(SynchronousTestCase):
    def test_told(self) -> None:
        """The error after waiting in vain contains the output of all programs."""
        directory = Path(self.mktemp())
        directory.mkdir(parents=True)
        code = SAYS.format("time.sleep(60)")
        running = start(self, [sys.executable, "-c", code], directory)
        until(lambda: "why" in running.said(), "a word")
        error = self.assertRaises(AssertionError, until, lambda: False, "it", 0.1)
        self.assertIn("not within 0.1 s: it\n", str(error))
        self.assertIn(" runs:\nwhy it is not\n", str(error))
        running.kill()
        error = self.assertRaises(AssertionError, becomes, 1, lambda: 2, 0.1)
        self.assertIn(" ended with -9:\nwhy it is not\n", str(error))
        self.assertTrue(str(error).endswith("\nfound at last: 2"), error)
