"""The process under twistd: log lines, failed starts, signals and the end."""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import ILogObserver, Logger
from twisted.python.components import Componentized

from api_exporter.daemon import logs
from api_exporter.daemon.outlets import ROTATED_AT, ROTATED_FILES, LogFile
from api_exporter.output import escape_missing_letters
from api_exporter.serving.listener import ListenError
from api_exporter.settings.definitions import Settings

log = Logger()


def reopen_standard_streams() -> None:
    """Restart the program with /dev/null in place of closed standard streams.

    The event loop may already use their numbers, and loses them when twistd becomes a
    daemon.
    """
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if None not in streams:
        return
    devnull = os.open(os.devnull, os.O_RDWR)
    for number, stream in enumerate(streams):
        if stream is None:
            os.dup2(devnull, number)
            os.set_inheritable(number, True)
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - it is the running program


def output_problem(options: Mapping[str, object]) -> str:
    """Return why lines on standard output would be lost; "" if they would not."""
    if not options["nodaemon"]:
        return "a daemon has no standard output to write to"
    if os.path.samestat(os.fstat(1), os.stat(os.devnull)):
        return f"standard output is closed, or {os.devnull}: lines would be lost"
    return ""


def start_error(problems: list[str], *, lasting: bool) -> SystemExit:
    """Print why the program does not start, one line for each problem.

    Return the error to raise: status 78 (EX_CONFIG) if a retry cannot help, else 1.
    """
    mark = logs.error_prefix(logs.standard_streams()[1], os.environ)
    for problem in problems:
        sys.stderr.write(f"{mark}api-exporter: {problem}\n")
    return SystemExit(os.EX_CONFIG if lasting else 1)


@contextmanager
def standard_output() -> Iterator[None]:
    """End without a traceback if standard output does not take what a block prints.

    If its reader has ended, as with `| head`, the status is that of SIGPIPE. A full
    disk is an error.
    """
    escape_missing_letters()
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in {errno.EPIPE, errno.ENOSPC}:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            raise SystemExit(128 + signal.SIGPIPE) from None
        problem = f"standard output cannot be written: {error.strerror}"
        raise start_error([problem], lasting=False) from None


class Exporter(MultiService):
    """The program as one service; without an observer twistd's own logs."""

    def __init__(self, observer: ILogObserver | None) -> None:
        super().__init__()
        self._observer = observer

    def setServiceParent(self, parent: Componentized) -> None:
        """Give the observer to the application, from which twistd takes it."""
        super().setServiceParent(parent)
        if self._observer is not None:
            parent.setComponent(ILogObserver, self._observer)

    def stopService(self) -> Deferred[object]:
        """Stop all services; then log a line."""
        stopped: Deferred[object] = super().stopService()
        return stopped.addBoth(lambda _: log.info("stopped"))


def log_file(twistd: Mapping[str, object]) -> LogFile | None:
    """Return the log file of twistd's options; None if log lines go elsewhere.

    Raises SystemExit if the file cannot be written.
    """
    name = str(twistd["logfile"] or "")
    if twistd["syslog"] or (twistd["nodaemon"] and name in {"", "-"}):
        return None
    if name == "-":
        raise start_error(["a daemon cannot log to standard output"], lasting=True)
    path = os.path.abspath(name or "twistd.log")
    try:
        file: LogFile = LogFile.fromFullPath(
            path, rotateLength=ROTATED_AT, maxRotatedFiles=ROTATED_FILES
        )
    except OSError as error:
        why = f"cannot write the log file {path}: {error.strerror}"
        raise start_error([why], lasting=False) from None
    return file


def log_observer(
    settings: Settings, twistd: Mapping[str, object], file: LogFile | None
) -> logs.LineObserver | None:
    """Return the observer for the file or the standard streams; None for syslog."""
    if twistd["syslog"]:
        return None
    form = settings.log_format
    if file is None:
        out, err = logs.to_streams(form, os.environ)
        if settings.output_setting:
            out = err
        return logs.LineObserver(settings.log_level, out, err)
    lines = logs.to_file(form, file)
    return logs.LineObserver(settings.log_level, lines, lines)


def install_exception_hook(twistd: Mapping[str, object]) -> None:
    """Install an exception hook that logs a ListenError as one line.

    A service's error at its start ends the process. The hook runs after twistd has
    removed the pid file, and after a daemon has reported to the terminal.
    """
    report = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, ListenError):
            report(kind, error, traceback)
            return
        text = f"LISTEN_ADDRESS: {error}"
        log.critical("{text}", text=text)
        if twistd["syslog"] or twistd["logfile"] not in {None, "", "-"}:
            _, terminal = logs.standard_streams()
            terminal.write(f"api-exporter: {text}\n")

    sys.excepthook = hook


def install_signal_handlers(
    twistd: Mapping[str, object],
    file: LogFile | None,
    reactor: PosixReactorBase,
    *,
    reload: Callable[[], None],
) -> None:
    """Handle SIGTERM, SIGUSR1 and SIGHUP.

    SIGTERM stops the program; SIGUSR1 begins a new log file, if there is one. At a
    terminal, SIGHUP means that the terminal was closed, and stops the program.
    Elsewhere SIGHUP reopens the log file and reloads settings and files.
    """

    def ignore_further_stops() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, *[signal.SIGHUP] * at_terminal):
            signal.signal(number, signal.SIG_IGN)

    def stop(*_: object) -> None:
        # Twisted's handler would exit with the signal.
        ignore_further_stops()
        reactor.callFromThread(reactor.stop)

    def reload_files(*_: object) -> None:
        reactor.callFromThread(_reload, file, reload)

    at_terminal = _is_at_terminal(twistd)
    # nohup starts programs with SIGHUP ignored.
    is_ignored = at_terminal and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    reactor.callWhenRunning(signal.signal, signal.SIGTERM, stop)  # after Twisted's own
    # SIGINT has Twisted's handler, which stops a second time with an error.
    reactor.addSystemEventTrigger("before", "shutdown", ignore_further_stops)
    if not is_ignored:
        signal.signal(signal.SIGHUP, stop if at_terminal else reload_files)
    renew = (lambda: None) if file is None else file.renew
    signal.signal(signal.SIGUSR1, lambda *_: reactor.callFromThread(renew))


def _reload(file: LogFile | None, reload: Callable[[], None]) -> None:
    if file is not None:
        file.reopen()
    log.info(
        "SIGHUP: reopening the log file, reloading settings and the files of tokens"
        " and certificates"
    )
    reload()


def _is_at_terminal(twistd: Mapping[str, object]) -> bool:
    if not twistd["nodaemon"] or twistd["logfile"] not in {None, "", "-"}:
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
