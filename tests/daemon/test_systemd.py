"""Messages to a supervisor, through a real socket."""

import os
import socket
import tempfile
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon.systemd import Notifier, watchdog_interval


class Systemd:
    """A supervisor behind NOTIFY_SOCKET."""

    def __init__(self, test: SynchronousTestCase, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        test.addCleanup(self._socket.close)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        """Return all messages since the last call."""
        messages = []
        while True:
            try:
                messages.append(self._socket.recv(65536).decode())
            except BlockingIOError:
                return messages


def directory(test: SynchronousTestCase) -> Path:
    """Return a directory whose path is short enough for a socket's name."""
    made = tempfile.TemporaryDirectory()
    test.addCleanup(made.cleanup)
    return Path(made.name)


class SupervisorTests(SynchronousTestCase):
    def test_file(self) -> None:
        """A message is one datagram to the socket, and blocks nothing."""
        path = str(directory(self) / "notify")
        name = f"api-exporter-test-{os.getpid()}"
        for address, variable in ((path, path), (f"\0{name}", f"@{name}")):
            systemd = Systemd(self, address)
            supervisor = Notifier({"NOTIFY_SOCKET": variable}, str, Clock())
            supervisor.notify(READY=1, STATUS="peers fresh, 3 peers, 0.1 s")
            supervisor.notify(WATCHDOG=1)
            messages = ["READY=1\nSTATUS=peers fresh, 3 peers, 0.1 s", "WATCHDOG=1"]
            self.assertEqual(messages, systemd.heard())
            for _ in range(5000):
                supervisor.notify(WATCHDOG=1)
            self.assertLess(len(systemd.heard()), 5000)

    def test_nobody(self) -> None:
        """A missing supervisor is no error, whether it never was there or has ended."""
        gone = directory(self) / "gone"
        Systemd(self, str(gone))
        gone.unlink()
        nobody = ("/nowhere/notify", "@api-exporter-test-nobody", "/" + 200 * "x")
        for address in ("", str(gone), *nobody):
            clock = Clock()
            notifier = Notifier({"NOTIFY_SOCKET": address}, str, clock)
            notifier.startService()
            notifier.notify(READY=1)
            self.assertEqual(address != "", bool(clock.getDelayedCalls()), address)

    def test_watchdog_interval(self) -> None:
        """A watchdog message is due at half the timeout, if it is for this process."""
        ours, other = str(os.getpid()), str(os.getppid())
        wrong = ("0", "", "soon", "-1", "²", "٣0000000", "9" * 5000)
        for usec, pid, expected in (
            ("30000000", ours, 15.0),
            ("30000000", "", 15.0),
            ("250000", ours, 0.125),
            ("30000000", other, None),
            *((usec, ours, None) for usec in wrong),
        ):
            environ = {"WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}
            environ = {name: value for name, value in environ.items() if value}
            self.assertEqual(expected, watchdog_interval(environ), environ)


class NotifierTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = directory(self) / "notify"
        self.systemd = Systemd(self, str(self.path))
        self.clock = Clock()
        self.fares = "peers fresh"

    def notifier(self, **environ: str) -> Notifier:
        """Return a notifier of the test's supervisor, or of the one in `environ`."""
        environ = {"NOTIFY_SOCKET": str(self.path), **environ}
        return Notifier(environ, lambda: self.fares, self.clock)

    def pings(self) -> int:
        return self.systemd.heard().count("WATCHDOG=1")

    def test_life(self) -> None:
        """READY comes first, then the status at changes and intervals, then the end."""
        notifier = self.notifier()
        notifier.startService()
        self.assertEqual(["READY=1", "STATUS=peers fresh"], self.systemd.heard())
        self.clock.advance(9.9)
        self.assertEqual([], self.systemd.heard())
        self.fares = "peers failing: 401"
        notifier.send_status()
        self.assertEqual(["STATUS=peers failing: 401"], self.systemd.heard())
        self.clock.advance(0.2)
        self.assertEqual(["STATUS=peers failing: 401"], self.systemd.heard())
        self.clock.pump([10.0] * 3)
        self.assertEqual(["STATUS=peers failing: 401"] * 3, self.systemd.heard())
        self.successResultOf(notifier.stopService())
        self.assertEqual(["STOPPING=1\nSTATUS=stopping"], self.systemd.heard())
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_watchdog(self) -> None:
        """Watchdog messages are sent at half the timeout, and missed ones only once."""
        notifier = self.notifier(WATCHDOG_USEC="4000000")
        notifier.startService()
        self.assertEqual(1, self.pings())
        self.clock.pump([0.5] * 3)
        self.assertEqual(0, self.pings())
        self.clock.advance(0.5)
        self.assertEqual(1, self.pings())
        self.clock.pump([2.0] * 5)
        self.assertEqual(5, self.pings())
        self.clock.advance(60)
        self.assertEqual(1, self.pings())
        notifier.stopService()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_supervisor_gone(self) -> None:
        """A supervisor that ends and starts again gets messages again."""
        notifier = self.notifier(WATCHDOG_USEC="4000000")
        notifier.startService()
        self.path.unlink()
        self.clock.advance(2)
        back = Systemd(self, str(self.path))
        self.clock.advance(2)
        self.assertEqual(["WATCHDOG=1"], back.heard())
        notifier.stopService()
        self.assertEqual(["STOPPING=1\nSTATUS=stopping"], back.heard())
        alone = Notifier({"WATCHDOG_USEC": "4000000"}, str, self.clock)
        alone.startService()
        alone.send_status()
        self.assertEqual([], self.clock.getDelayedCalls())
        alone.stopService()
