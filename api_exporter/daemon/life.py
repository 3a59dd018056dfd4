"""The life of the daemon under twistd: its log lines, a start that fails, its end."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import TracebackType

from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import ILogObserver, Logger
from twisted.python.components import Componentized

from api_exporter.daemon import logs
from api_exporter.daemon.outlets import ROTATED_AT, ROTATED_FILES, LogFile
from api_exporter.serving.listener import ListenError
from api_exporter.settings.definitions import Settings

log = Logger()


def need_standard_streams() -> None:
    """Begin again with nothing in place of those that were closed at the start.

    By now the event loop may have their numbers, and loses them when twistd becomes a
    daemon.
    """
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if None not in streams:
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, stream in enumerate(streams):
        if stream is None:
            os.dup2(nothing, number)
            os.set_inheritable(number, True)
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - it is what runs already


def no_output(options: Mapping[str, object]) -> str:
    """Why what is written to standard output would be lost; "" where it would not."""
    if not options["nodaemon"]:
        return "a daemon has no standard output to write to"
    if os.path.samestat(os.fstat(1), os.stat(os.devnull)):
        return f"standard output is closed, or {os.devnull}: lines would be lost"
    return ""


def refusal(problems: list[str], *, lasting: bool) -> SystemExit:
    """Say why the program does not start, a line each.

    Returns:
        The end of it: status 78 (EX_CONFIG) for what no waiting mends, otherwise 1.
    """
    mark = logs.mark(logs.standard_streams()[1], os.environ)
    for problem in problems:
        sys.stderr.write(f"{mark}api-exporter: {problem}\n")
    return SystemExit(os.EX_CONFIG if lasting else 1)


class Exporter(MultiService):
    """The program as one service, which brings its log observer along.

    Args:
        observer: None leaves twistd's own.
    """

    def __init__(self, observer: ILogObserver | None) -> None:
        super().__init__()
        self._observer = observer

    def setServiceParent(self, parent: Componentized) -> None:
        """Hand the observer to the application, where twistd looks for it."""
        super().setServiceParent(parent)
        if self._observer is not None:
            parent.setComponent(ILogObserver, self._observer)

    def stopService(self) -> Deferred[object]:
        """Fires when all parts have stopped; then a line says so."""
        stopped: Deferred[object] = super().stopService()
        return stopped.addBoth(lambda _: log.info("stopped"))


def log_file(twistd: Mapping[str, object]) -> LogFile | None:
    """The file that twistd's options send log lines to; None where they send them
    elsewhere.

    Raises SystemExit where it cannot be written.
    """
    name = str(twistd["logfile"] or "")
    if twistd["syslog"] or (twistd["nodaemon"] and name in {"", "-"}):
        return None
    if name == "-":
        raise refusal(["a daemon cannot log to standard output"], lasting=True)
    try:
        file: LogFile = LogFile.fromFullPath(
            name or "twistd.log",
            rotateLength=ROTATED_AT,
            maxRotatedFiles=ROTATED_FILES,
        )
    except OSError as error:
        why = f"cannot write the log file {error.filename}: {error.strerror}"
        raise refusal([why], lasting=False) from None
    return file


def log_observer(
    settings: Settings, twistd: Mapping[str, object], file: LogFile | None
) -> logs.LineObserver | None:
    """Our log lines, in the file or on the standard streams; None where to syslog."""
    if twistd["syslog"]:
        return None
    form = settings.log_format
    if file is None:
        out, err = logs.to_streams(form, os.environ)
        if settings.to_output:
            out = err
        return logs.observer(settings.log_level, out, err)
    lines = logs.to_file(form, file)
    return logs.observer(settings.log_level, lines, lines)


def explain_failures(twistd: Mapping[str, object]) -> None:
    """Say in one line, without a traceback, why the program cannot serve.

    twistd lets what a service raises at its start end the process: with its pid file
    removed, and, from a daemon, with a report to the terminal. This has the last word.
    """
    report = sys.excepthook

    def hook(
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, ListenError):
            report(kind, error, traceback)
            return
        why = f"LISTEN_ADDRESS: {error}"
        log.critical("{why}", why=why)
        if twistd["syslog"] or twistd["logfile"] not in {None, "", "-"}:
            _, terminal = logs.standard_streams()
            terminal.write(f"api-exporter: {why}\n")

    sys.excepthook = hook


def heed_signals(
    twistd: Mapping[str, object],
    file: LogFile | None,
    reactor: PosixReactorBase,
    *,
    reload: Callable[[], None],
) -> None:
    """SIGTERM ends it well, SIGUSR1 begins a new log file, SIGHUP is one of the two.

    A terminal that is closed says SIGHUP, and means the end. Where there is none, or
    where the lines go to a file, it is an operator's: settings are read at the start
    only, but files that were replaced are looked at.

    Args:
        reload: looks at the files of tokens and certificates.
    """

    def stop(*_: object) -> None:
        # Once is enough. Twisted would end by the signal that it received.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if ends:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        reactor.callFromThread(reactor.stop)

    def reload_files(*_: object) -> None:
        reactor.callFromThread(_reload, file, reload)

    ends = _at_a_terminal(twistd)
    # nohup has it ignored.
    stays = ends and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    reactor.callWhenRunning(signal.signal, signal.SIGTERM, stop)  # after Twisted's own
    if not stays:
        signal.signal(signal.SIGHUP, stop if ends else reload_files)
    if file is not None:
        signal.signal(signal.SIGUSR1, lambda *_: reactor.callFromThread(file.renew))


def _reload(file: LogFile | None, reload: Callable[[], None]) -> None:
    if file is not None:
        file.reopen()
    log.info(
        "SIGHUP: reopening the log file, reloading the files of tokens and"
        " certificates; a change of settings needs a restart"
    )
    reload()


def _at_a_terminal(twistd: Mapping[str, object]) -> bool:
    """Whether a window shows what we say, and may be closed."""
    if not twistd["nodaemon"] or twistd["logfile"] not in {None, "", "-"}:
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
