"""The life of the daemon under twistd: its log lines, a start that fails, its end."""

import signal
import sys
from collections.abc import Mapping
from types import TracebackType

from twisted.application.service import MultiService
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import ILogObserver, Logger
from twisted.python.components import Componentized
from twisted.python.logfile import LogFile

from api_exporter.daemon import logs
from api_exporter.serving.listen import CannotServe
from api_exporter.settings.table import Settings

log = Logger()


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


def log_observer(
    settings: Settings, twistd: Mapping[str, object], reactor: PosixReactorBase
) -> ILogObserver | None:
    """Our log lines, wherever twistd's options send them; None where to syslog.

    Raises SystemExit where the log file cannot be written.
    """
    if twistd["syslog"]:
        return None
    level, form = settings.log_level, settings.log_format
    name = str(twistd["logfile"] or "")
    if twistd["nodaemon"] and name in {"", "-"}:
        return logs.observer(level, form, *logs.standard_streams())
    if name == "-":
        raise SystemExit("api-exporter: a daemon cannot log to standard output")
    try:
        file = LogFile.fromFullPath(name or "twistd.log")
    except OSError as error:
        raise SystemExit(
            f"api-exporter: cannot write the log file {error.filename}:"
            f" {error.strerror}"
        ) from None
    signal.signal(signal.SIGUSR1, lambda *_: reactor.callFromThread(file.rotate))
    return logs.observer(level, form, file, file)


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
        if not isinstance(error, CannotServe):
            report(kind, error, traceback)
            return
        why = f"LISTEN_ADDRESS: {error}"
        log.critical("{why}", why=why)
        if twistd["syslog"] or twistd["logfile"] not in {None, "", "-"}:
            _, terminal = logs.standard_streams()
            terminal.write(f"api-exporter: {why}\n")

    sys.excepthook = hook


def end_well(reactor: PosixReactorBase) -> None:
    """Make SIGTERM, a supervisor's polite request, an exit with status 0.

    Twisted ends by the signal that it received, once it has stopped.
    """

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        reactor.callFromThread(reactor.stop)

    reactor.callWhenRunning(signal.signal, signal.SIGTERM, stop)
