"""What the program is told: options, configuration file and environment, checked."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger

from api_exporter.settings import file
from api_exporter.settings.options import Options
from api_exporter.settings.table import (
    UPSTREAM_API_TOKEN_FILE,
    Settings,
    SettingsError,
    read,
)

log = Logger()


class Configured(Struct, frozen=True):
    """The checked settings and, for `--demo`, the socket of the simulated upstream."""

    settings: Settings
    simulation: socket.socket | None


def configured(options: Options) -> Configured:
    """Read the configuration file and the environment; raises SystemExit.

    What the file sets gets into the environment of the process, because libraries read
    theirs there, too: SSL_CERT_FILE for one.
    """
    if options["config"] is not None:
        _load(Path(options["config"]))
    environ: Mapping[str, str] = os.environ
    simulation = None
    if options["demo"]:
        # Nobody but the demo pays for importing it.
        from api_exporter.demo import server as demo  # noqa: PLC0415

        simulation = demo.bind()
        environ = {**environ, **demo.environ(simulation)}
        environ.pop(UPSTREAM_API_TOKEN_FILE.name, None)
    try:
        return Configured(read(environ), simulation)
    except SettingsError as error:
        raise _refusal(error.problems) from None


def simulated(configured: Configured, reactor: PosixReactorBase) -> Service | None:
    """The simulated upstream, if there is to be one."""
    if configured.simulation is None:
        return None
    from api_exporter.demo.server import DemoServer  # noqa: PLC0415 - see above

    return DemoServer(
        configured.simulation,
        peers=configured.settings.demo_peers,
        rate_limit=configured.settings.demo_rate_limit,
        reactor=reactor,
        now=time.time,
    )


def _load(path: Path) -> None:
    try:
        found = file.load(path)
    except file.ConfigurationError as error:
        raise _refusal(error.problems) from None
    os.environ.update(file.below(os.environ, found))
    if file.readable_by_all(path):
        log.warn("{path} can be read by everybody on this machine", path=str(path))


def _refusal(problems: list[str]) -> SystemExit:
    return SystemExit("\n".join(f"api-exporter: {problem}" for problem in problems))
