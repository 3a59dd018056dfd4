"""Where the `api-exporter` command begins: what must come before Twisted is imported.

`--health` is asked again and again by supervisors, and has to be quick; `--version`
need not wait either.
"""

import os
import sys


def main() -> None:
    open_standard_streams()
    if "--health" in sys.argv[1:]:
        from api_exporter.checking import health  # noqa: PLC0415

        raise SystemExit(health.main(sys.argv[1:], os.environ))
    if "--version" in sys.argv[1:]:
        from api_exporter.version import this_build  # noqa: PLC0415

        sys.stdout.write(f"{this_build()}\n")
        return
    from api_exporter import cli  # noqa: PLC0415

    cli.main()


def open_standard_streams() -> None:
    """Make nothing of those that are closed, lest a connection gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r")  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
