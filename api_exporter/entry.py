"""The entry point of the `api-exporter` command, before Twisted is imported.

Supervisors run `--health` often, so it has to be quick; so is `--version`.
"""

import os
import sys

from api_exporter.output import write_line
from api_exporter.settings.inherited import remove_harmful_variables


def main() -> None:
    open_standard_streams()
    remove_harmful_variables(os.environ)  # before a library is imported
    if "--health" in sys.argv[1:]:
        from api_exporter.checking import health  # noqa: PLC0415

        raise SystemExit(health.main(sys.argv[1:], os.environ))
    if "--version" in sys.argv[1:]:
        from api_exporter.version import this_build  # noqa: PLC0415

        write_line(str(this_build()))
        return
    from api_exporter import cli  # noqa: PLC0415

    cli.main()


def open_standard_streams() -> None:
    """Open missing standard streams as /dev/null.

    Otherwise a connection could get the number of a standard stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r")  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
