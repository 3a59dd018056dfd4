"""Failed starts, the destinations of log lines, signals and the end."""

import io
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from twisted.application.service import Application, IServiceCollection, Service
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, Logger, LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon import process
from api_exporter.daemon.outlets import ROTATED_AT, ROTATED_FILES, LogFile
from api_exporter.serving.listener import ListenError
from api_exporter.settings.environment import read_settings
from tests.logbook import logbook
from tests.memory_reactor import MemoryReactorClock

REQUIRED = {"UPSTREAM_API_URL": "https://api.example", "UPSTREAM_API_TOKEN": "x"}
SETTINGS = read_settings(REQUIRED)


def twistd(
    *, nodaemon: bool = True, logfile: str | None = None, syslog: bool = False
) -> dict[str, object]:
    return {"nodaemon": nodaemon, "logfile": logfile, "syslog": syslog}


@contextmanager
def replaced(number: int) -> Iterator[Path]:
    """Redirect a standard stream into a file; yield its path."""
    copy = os.dup(number)
    with tempfile.NamedTemporaryFile() as file:
        os.dup2(file.fileno(), number)
        try:
            yield Path(file.name)
        finally:
            os.dup2(copy, number)
            os.close(copy)


class RefusalTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.terminal = io.StringIO()
        self.patch(sys, "stderr", self.terminal)

    def test_status(self) -> None:
        """Each problem has a line; the status shows whether a retry may help."""
        for lasting, status in ((True, os.EX_CONFIG), (False, 1)):
            self.assertEqual(
                status, process.start_error(["a", "b"], lasting=lasting).code
            )
        expected = "api-exporter: a\napi-exporter: b\n" * 2
        self.assertEqual(expected, self.terminal.getvalue())

    def test_log_file(self) -> None:
        """A daemon has no standard output; a file may be writable later."""
        daemon = twistd(nodaemon=False, logfile="-")
        nowhere = twistd(logfile="/nowhere/x")
        pipe = os.path.abspath(self.mktemp())
        os.mkfifo(pipe)
        for options, status, words in (
            (daemon, 78, "a daemon cannot log to standard"),
            (nowhere, 1, "cannot write the log file /nowhere/x: No such"),
            (twistd(logfile=pipe), 1, f"cannot write the log file {pipe}: Illegal"),
        ):
            raised = self.assertRaises(SystemExit, process.log_file, options)
            self.assertEqual(status, raised.code)
            self.assertIn(words, self.terminal.getvalue())

    def test_output(self) -> None:
        """Lines on standard output are lost in a daemon, or if it is /dev/null."""
        problem = "a daemon has no standard output to write to"
        self.assertEqual(problem, process.output_problem(twistd(nodaemon=False)))
        with replaced(1):
            self.assertEqual("", process.output_problem(twistd()))
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), 1)
            self.assertIn("lines would be lost", process.output_problem(twistd()))

    def test_closed_streams(self) -> None:
        """With a closed standard stream the program starts again with /dev/null."""
        started: list[Sequence[str]] = []
        self.patch(os, "execv", lambda _, command: started.append(command))
        process.reopen_standard_streams()
        self.assertEqual([], started)
        self.patch(sys, "__stdin__", None)
        for is_reused in (False, True):
            with replaced(0):
                if not is_reused:
                    os.close(0)
                process.reopen_standard_streams()
                self.assertTrue(os.path.samestat(os.fstat(0), os.stat(os.devnull)))
                self.assertTrue(os.get_inheritable(0))
        self.assertEqual([sys.orig_argv] * 2, started)


class LogTests(SynchronousTestCase):
    def test_places(self) -> None:
        """Lines go to twistd's log file, the standard streams or syslog."""
        events = {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": "cursor"}
        beside, name = read_settings(REQUIRED | events), self.mktemp()
        for settings, options, place in (
            (SETTINGS, twistd(logfile=name), "file"),
            (SETTINGS, twistd(), "out"),
            (SETTINGS, twistd(logfile="-"), "out"),
            (beside, twistd(), "err"),
            (SETTINGS, twistd(syslog=True), ""),
            (SETTINGS, twistd(syslog=True, nodaemon=False), ""),
        ):
            with replaced(1) as out, replaced(2) as err:
                file = process.log_file(options)
                observer = process.log_observer(settings, options, file)
                self.assertEqual(place != "", observer is not None)
                if observer is not None:
                    log = Logger("api_exporter.test", observer=LogPublisher(observer))
                    log.info("seen")
                if file is not None:
                    file.close()
                paths = {"out": out, "err": err, "file": Path(name)}
                found = [key for key, p in paths.items() if "seen\n" in p.read_text()]
            self.assertEqual([place] if place else [], found, options)
            Path(name).write_text("")

    def test_rotated(self) -> None:
        """The log keeps at most 100 MB in ten files."""
        self.assertEqual(100_000_000, ROTATED_AT * (1 + ROTATED_FILES))
        name = self.mktemp()
        file = process.log_file(twistd(logfile=name))
        assert file is not None
        self.addCleanup(file.close)
        for number in range(2 * ROTATED_FILES):
            Path(name).write_text(f"{number}\n")
            file.size = ROTATED_AT  # as if it were that long
            self.assertTrue(file.write("last\n"))
        found = sorted(Path(name).parent.glob(f"{Path(name).name}*"))
        self.assertEqual(1 + ROTATED_FILES, len(found), found)
        self.assertTrue(Path(f"{name}.1").read_text().startswith("17\n"))

    def test_observer(self) -> None:
        """The application holds the log observer for twistd, if it is not twistd's."""
        for observer in (None, process.log_observer(SETTINGS, twistd(), None)):
            application = Application("test")
            exporter = process.Exporter(observer)
            exporter.setServiceParent(application)
            self.assertIs(observer, application.getComponent(ILogObserver))
            self.assertEqual([exporter], list(IServiceCollection(application)))

    def test_stopped(self) -> None:
        """The last line comes when all services have stopped."""
        book = logbook(self)
        exporter, slow = process.Exporter(None), Service()
        ending: Deferred[None] = Deferred()
        self.patch(slow, "stopService", lambda: ending)
        exporter.addService(slow)
        stopped = exporter.stopService()
        self.assertEqual([], book.lines())
        ending.callback(None)
        self.successResultOf(stopped)
        self.assertEqual(["info stopped"], book.lines())


class FailedStartTests(SynchronousTestCase):
    def test_port(self) -> None:
        """A port in use is one log line, also on the terminal of a daemon."""
        reported: list[BaseException] = []
        error, defect = ListenError("port in use"), ZeroDivisionError()
        for options, shown in (
            (twistd(), False),
            (twistd(logfile="-"), False),
            (twistd(logfile="x.log"), True),
            (twistd(syslog=True), True),
        ):
            book = logbook(self)
            self.patch(sys, "excepthook", lambda _, error, __: reported.append(error))
            process.install_exception_hook(options)
            with replaced(2) as terminal:
                sys.excepthook(ListenError, error, None)
                line = "api-exporter: LISTEN_ADDRESS: port in use\n"
                self.assertEqual(shown, line in terminal.read_text(), options)
            self.assertEqual(["error LISTEN_ADDRESS: port in use"], book.lines())
            sys.excepthook(ZeroDivisionError, defect, None)
        self.assertEqual([defect] * 4, reported)


class ThreadReactor(MemoryReactorClock):
    """A reactor that runs calls from other threads and signal handlers at once."""

    def callFromThread(  # noqa: N802 - the name is Twisted's
        self, call: Callable[..., object], *arguments: object
    ) -> None:
        call(*arguments)


class SignalTests(SynchronousTestCase):
    def setUp(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.reactor = ThreadReactor()
        self.reloaded: list[None] = []
        self.file: LogFile = LogFile.fromFullPath(str(Path(self.mktemp()).absolute()))
        self.addCleanup(self.file.close)

    def install(self, file: LogFile | None, *, foreground: bool = False) -> None:
        """Install the handlers, and run the reactor."""
        process.install_signal_handlers(
            twistd(nodaemon=foreground, logfile=file.path if file else None),
            file,
            self.reactor,  # type: ignore[arg-type]
            reload=lambda: self.reloaded.append(None),
        )
        self.reactor.run()
        self.reactor.hasStopped = False

    def test_terminate(self) -> None:
        """SIGTERM stops the program; further ones, and SIGINT, are ignored."""
        self.install(None)
        signal.raise_signal(signal.SIGTERM)
        self.assertTrue(self.reactor.hasStopped)
        self.assert_ignored()

    def test_interrupt(self) -> None:
        """Further signals are also ignored after SIGINT, which Twisted handles."""
        self.install(None)
        [(ignore, *_)] = self.reactor.triggers["before"]["shutdown"]
        ignore()
        self.assert_ignored()

    def assert_ignored(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assertEqual(signal.SIG_IGN, signal.getsignal(number))
        self.assertNotEqual(signal.SIG_IGN, signal.getsignal(signal.SIGHUP))

    def test_hang_up(self) -> None:
        """SIGHUP opens the log file again, and reloads files."""
        book, path = logbook(self), Path(self.file.path)
        for file in (None, self.file):
            self.install(file)
            path.rename(path.with_suffix(".old"))
            signal.raise_signal(signal.SIGHUP)
            self.assertEqual(file is not None, path.exists())
            path.touch()
        self.assertEqual(2, len(self.reloaded))
        self.assertEqual(2, str(book.lines()).count("SIGHUP: reopening the log file"))
        self.assertFalse(self.reactor.hasStopped)

    def test_terminal(self) -> None:
        """At its terminal SIGHUP stops a program without a log file or nohup."""
        opened = os.open
        for before, tty, file, foreground, stops in (
            (signal.SIG_DFL, os.devnull, None, True, True),
            (signal.SIG_IGN, os.devnull, None, True, False),
            (signal.SIG_DFL, os.devnull, self.file, True, False),
            (signal.SIG_DFL, os.devnull, None, False, False),
            (signal.SIG_DFL, "/missing", None, True, False),
        ):
            signal.signal(signal.SIGHUP, before)

            def open_instead(path: str, flags: int, tty: str = tty) -> int:
                return opened(tty if path == "/dev/tty" else path, flags)

            self.patch(os, "open", open_instead)
            self.install(file, foreground=foreground)
            self.patch(os, "open", opened)
            signal.raise_signal(signal.SIGHUP)
            self.assertEqual(stops, self.reactor.hasStopped)

    def test_rotate(self) -> None:
        """SIGUSR1 begins a new log file. Without one it does not end the program."""
        self.install(None)
        signal.raise_signal(signal.SIGUSR1)
        self.install(self.file)
        self.file.write("a\n")
        signal.raise_signal(signal.SIGUSR1)
        self.assertEqual("", Path(self.file.path).read_text())
        self.assertEqual("a\n", Path(f"{self.file.path}.1").read_text())
