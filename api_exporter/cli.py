"""The `api-exporter` command: twistd in the foreground, with this service only.

twistd looks up plugins in directories, which a one-file executable lacks. So
twistd's runner gets this ServiceMaker directly.

Modules that only a running exporter needs are imported when it starts: --version
and --help stay quick.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, ClassVar, NoReturn

from twisted.application.service import IServiceMaker, MultiService, ServiceMaker
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from twisted.python import usage
from twisted.scripts._twistd_unix import ServerOptions
from twisted.scripts.twistd import runApp

from api_exporter.settings.errors import quote_value
from api_exporter.settings.options import Options

if TYPE_CHECKING:
    from twisted.internet.posixbase import PosixReactorBase

__all__ = ["Options", "main", "makeService"]

MAKER = ServiceMaker("api-exporter", "api_exporter.cli", "", "api-exporter")


def makeService(options: Options) -> MultiService:
    """Return the service that twistd runs.

    Imported modules stay in memory, so they are excluded from garbage collection, which
    is also disabled while they are imported.
    """
    gc.disable()
    from api_exporter import service  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    return service.makeService(options)


_STRICT = (
    "With --check: exit with 1 for warnings or unread resources, 2 for critical"
    " findings, 3 if NetBird cannot be read."
)


class CommandOptions(Options):
    """The options of the daemon and of the commands for a terminal."""

    synopsis = (
        f"{Options.synopsis} [--check [--strict] [--json] | --once]"
        " [--account NAME]\n"
        "       api-exporter --runbook NAME\n"
        "       api-exporter --health [--config FILE] [URL or /PAGE"
        " [SECONDS]]"
    )
    optFlags: ClassVar = [
        *Options.optFlags,
        ["check", None, "Read everything once, print a report, and exit."],
        ["strict", None, _STRICT],
        ["json", None, "With --check: print the report as one JSON document."],
        ["once", None, "Read everything once, print the metrics, and exit."],
        ["health", None, "Check that a running exporter works, and exit."],
        ["settings", None, "Print an example file with all settings, and exit."],
    ]
    optParameters: ClassVar = [
        *Options.optParameters,
        ["account", None, None, "Name of the account to read, if there are several."],
        ["runbook", None, None, "Print what to do about an alert, and exit."],
    ]

    def __str__(self) -> str:
        from api_exporter.settings.example import overview  # noqa: PLC0415

        return "\n".join([super().__str__(), *overview(), ""])

    def opt_help(self) -> NoReturn:
        _print(f"{self}\n")  # its reader may end early
        raise SystemExit(0)

    opt_help.__doc__ = Options.opt_help.__doc__  # which the executable has, too

    def parseArgs(self, *words: str) -> None:
        """Refuse words that are no options."""
        if words:
            word = quote_value(words[0])
            raise usage.UsageError(f"{word} is not an option: options begin with --")


class _Twistd(ServerOptions):
    """twistd's options with a single service to choose."""

    @property
    def subCommands(self) -> Iterator[tuple[str, None, object, str]]:
        self.loadedPlugins: dict[str, IServiceMaker] = {MAKER.tapname: MAKER}
        yield MAKER.tapname, None, MAKER.options, MAKER.description


def main() -> None:
    """Run in the foreground, without a pid file, until a signal arrives."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, _end)  # Twisted replaces it later
    options = CommandOptions()
    config = _Twistd()
    try:
        options.parseOptions(sys.argv[1:])
        if options["check"] and options["once"]:
            raise usage.UsageError("use only one of --check and --once")  # noqa: TRY301
        reading = options["check"] or options["once"]
        if options["account"] is not None and not reading:
            raise usage.UsageError("--account requires --check or --once")  # noqa: TRY301
        for name in ("strict", "json"):
            if options[name] and not options["check"]:
                raise usage.UsageError(f"--{name} requires --check")  # noqa: TRY301
        if reading:
            react(_report, [options])
        if options["settings"]:
            from api_exporter.settings.example import example_file  # noqa: PLC0415

            _print(example_file())
            return
        if options["runbook"] is not None:
            _print(_runbook(options["runbook"]))
            return
        config.parseOptions(["--nodaemon", "--pidfile=", MAKER.tapname, *sys.argv[1:]])
    except usage.UsageError as error:
        from api_exporter.daemon.process import start_error  # noqa: PLC0415
        from api_exporter.settings.spelling import hint_for_options  # noqa: PLC0415

        hint = hint_for_options(sys.argv[1:])
        problem = f"{error}{hint}; see api-exporter --help"
        raise start_error([problem], lasting=True) from None
    runApp(config)


def _end(number: int, _: FrameType | None) -> None:
    """End by a signal, whose default does nothing to process 1 of a container."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _print(text: str) -> None:
    from api_exporter.daemon.process import standard_output  # noqa: PLC0415

    with standard_output():
        sys.stdout.write(text)


def _runbook(name: str) -> str:
    from api_exporter.web.runbooks import runbook_text  # noqa: PLC0415

    try:
        return runbook_text(name)
    except ValueError as error:
        raise usage.UsageError(f"--runbook: {error}") from None


def _report(reactor: "PosixReactorBase", options: CommandOptions) -> Deferred[None]:
    from api_exporter.checking import report  # noqa: PLC0415

    for number in (signal.SIGINT, signal.SIGTERM):  # Twisted's handler ends with 0
        is_ignored = signal.getsignal(number) is signal.SIG_IGN  # as by a shell's `&`
        action = signal.SIG_IGN if is_ignored else _end
        reactor.callWhenRunning(signal.signal, number, action)
    return Deferred.fromCoroutine(report.run(reactor, options))
