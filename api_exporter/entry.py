"""The entry point of the `api-exporter` command, before Twisted is imported.

Supervisors run `--health` often, so it has to be quick; so is `--version`.
"""

import os
import sys

from api_exporter.settings.inherited import remove_harmful_variables


def main() -> None:
    open_standard_streams()
    remove_harmful_variables(os.environ)  # before a library is imported
    if "--health" in sys.argv[1:]:
        from api_exporter.checking import health  # noqa: PLC0415

        status = health.main(sys.argv[1:], os.environ)
        drop_unwritten()
        raise SystemExit(status)
    if "--version" in sys.argv[1:]:
        from api_exporter.version import this_build  # noqa: PLC0415

        sys.stdout.write(f"{this_build()}\n")
        drop_unwritten()
        return
    from api_exporter import cli  # noqa: PLC0415

    cli.main()


def drop_unwritten() -> None:
    """Drop what standard output does not accept: Python would end with status 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
