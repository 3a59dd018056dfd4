"""The command line. Everything else is a setting in the environment."""

import os
import sys
from contextlib import suppress
from typing import ClassVar, NoReturn

from twisted.python import usage

from api_exporter.settings.inherited import remove_harmful_variables
from api_exporter.version import this_build


class Options(usage.Options):
    """The options of `twistd api-exporter` and of `api-exporter`."""

    synopsis = "Usage: api-exporter [--config FILE] [--demo] [--enable-pprof]"
    longdesc = (
        "Serves Prometheus metrics of a NetBird network. Settings come from the"
        " environment. Set at least UPSTREAM_API_URL and UPSTREAM_API_TOKEN. --demo"
        " needs no settings."
    )
    optFlags: ClassVar = [
        ["demo", None, "Show a simulated network; no NetBird API is needed."],
        ["enable-pprof", None, "Serve profiles below /debug/pprof/."],
    ]

    optParameters: ClassVar = [
        [
            "config",
            "c",
            None,
            "File with NAME=value lines. The environment takes precedence.",
        ]
    ]

    def __init__(self) -> None:
        super().__init__()
        remove_harmful_variables(os.environ)
        # The configuration file adds variables to the environment of the process.
        self.environ = dict(os.environ)
        # twistd may change the folder, but a reload finds the same files.
        self.folder = ""
        with suppress(FileNotFoundError):  # the folder was deleted
            self.folder = os.getcwd()

    def postOptions(self) -> None:
        """Refuse `--config=`, as a variable that is not set leaves it."""
        if self["config"] == "":
            raise usage.UsageError("--config requires the name of a file")

    def opt_version(self) -> NoReturn:
        sys.stdout.write(f"{this_build()}\n")
        raise SystemExit(0)

    def opt_help(self) -> None:
        super().opt_help()

    # Twisted prints these docstrings, which the executable would not contain.
    opt_version.__doc__ = "Print the version and exit."
    opt_help.__doc__ = "Display this help and exit."
