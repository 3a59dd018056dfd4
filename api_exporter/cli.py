"""The `api-exporter` command: twistd in the foreground, with our service and no search.

Plugins are looked up in directories; a one-file executable has none. So twistd's runner
is handed our ServiceMaker directly.
"""

import sys
from collections.abc import Iterator

from twisted.application.service import IServiceMaker, ServiceMaker
from twisted.python import usage
from twisted.scripts._twistd_unix import ServerOptions
from twisted.scripts.twistd import runApp

MAKER = ServiceMaker("api-exporter", "api_exporter.service", "", "api-exporter")


class _Twistd(ServerOptions):
    """twistd's options with a single service to choose."""

    @property
    def subCommands(self) -> Iterator[tuple[str, None, object, str]]:
        self.loadedPlugins: dict[str, IServiceMaker] = {MAKER.tapname: MAKER}
        yield MAKER.tapname, None, MAKER.options, MAKER.description


def main() -> None:
    """Run in the foreground until a signal comes; without a pid file."""
    config = _Twistd()
    try:
        config.parseOptions(["--nodaemon", "--pidfile=", MAKER.tapname, *sys.argv[1:]])
    except usage.UsageError as error:
        raise SystemExit(f"api-exporter: {error}; see api-exporter --help") from None
    runApp(config)
