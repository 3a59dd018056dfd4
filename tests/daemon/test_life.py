"""Failed starts, and the destinations of log lines."""

import io
import os
import sys
from pathlib import Path

from twisted.logger import Logger, LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon import life
from api_exporter.daemon.outlets import ROTATED_AT, ROTATED_FILES, LogFile
from api_exporter.settings.environment import read_settings

SETTINGS = read_settings(
    {"UPSTREAM_API_URL": "https://api.example", "UPSTREAM_API_TOKEN": "x"}
)


def twistd(
    *, nodaemon: bool = True, logfile: str | None = None, syslog: bool = False
) -> dict[str, object]:
    return {"nodaemon": nodaemon, "logfile": logfile, "syslog": syslog}


class RefusalTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.terminal = io.StringIO()
        self.patch(sys, "stderr", self.terminal)

    def test_status(self) -> None:
        """Each problem has a line; the status shows whether a retry may help."""
        for lasting, status in ((True, os.EX_CONFIG), (False, 1)):
            self.assertEqual(status, life.start_error(["a", "b"], lasting=lasting).code)
        expected = "api-exporter: a\napi-exporter: b\n" * 2
        self.assertEqual(expected, self.terminal.getvalue())

    def test_standard_output(self) -> None:
        """A daemon has no standard output to log to."""
        with self.assertRaises(SystemExit) as raised:
            life.log_file(twistd(nodaemon=False, logfile="-"))
        self.assertEqual(os.EX_CONFIG, raised.exception.code)

    def test_not_writable(self) -> None:
        """A log file that cannot be written may be writable later."""
        with self.assertRaises(SystemExit) as raised:
            life.log_file(twistd(logfile="/nowhere/x.log"))
        self.assertEqual(1, raised.exception.code)
        self.assertIn("cannot write the log file /nowhere/", self.terminal.getvalue())


class LogTests(SynchronousTestCase):
    def test_file(self) -> None:
        """Lines go to the log file of twistd's options."""
        name = self.mktemp()
        file = life.log_file(twistd(logfile=name))
        assert isinstance(file, LogFile)
        self.addCleanup(file.close)
        observer = life.log_observer(SETTINGS, twistd(logfile=name), file)
        assert observer is not None
        log = Logger("api_exporter.test", observer=LogPublisher(observer))
        log.info("seen")
        self.assertIn("info seen", Path(name).read_text())

    def test_rotated(self) -> None:
        """The log keeps at most 100 MB in ten files."""
        self.assertEqual(100_000_000, ROTATED_AT * (1 + ROTATED_FILES))
        name = self.mktemp()
        file = life.log_file(twistd(logfile=name))
        assert file is not None
        self.addCleanup(file.close)
        for number in range(2 * ROTATED_FILES):
            Path(name).write_text(f"{number}\n")
            file.size = ROTATED_AT  # as if it were that long
            self.assertTrue(file.write("last\n"))
        found = sorted(Path(name).parent.glob(f"{Path(name).name}*"))
        self.assertEqual(1 + ROTATED_FILES, len(found), found)
        self.assertTrue(Path(f"{name}.1").read_text().startswith("17\n"))

    def test_beside_events(self) -> None:
        """If standard output is for events, all lines go to standard error."""
        environ = {"UPSTREAM_API_URL": "https://api.example", "UPSTREAM_API_TOKEN": "x"}
        events = read_settings(
            environ | {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": "cursor"}
        )
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        out, err = os.dup(1), os.dup(2)
        os.dup2(write_end, 2)
        os.close(write_end)
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 1)
        try:
            observer = life.log_observer(events, twistd(), None)
            assert observer is not None
            log = Logger("api_exporter.test", observer=LogPublisher(observer))
            log.info("seen")
        finally:
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.close(out)
            os.close(err)
        self.assertIn(b"info seen", os.read(read_end, 1000))

    def test_elsewhere(self) -> None:
        """Otherwise lines go to the standard streams, or to syslog through twistd."""
        for options, ours in (
            (twistd(), True),
            (twistd(logfile="-"), True),
            (twistd(syslog=True), False),
            (twistd(syslog=True, nodaemon=False), False),
        ):
            self.assertIsNone(life.log_file(options))
            observer = life.log_observer(SETTINGS, options, None)
            self.assertEqual(ours, observer is not None)
