"""The manual page, made from the options, in roff's `man` macros."""

import re
from collections.abc import Iterator
from itertools import chain

from api_exporter.cli import CommandOptions
from api_exporter.settings.example import plain

HEAD = """\
.\\" Made from the code by `make docs`: change it there.
.TH API-EXPORTER 1 "" api-exporter "User Commands"
.nh
.ad l
.SH NAME
api-exporter \\- Prometheus exporter for the management API of NetBird networks
.SH SYNOPSIS
"""

DESCRIPTION = """\
.SH DESCRIPTION
Reads the management API of a NetBird network, or of several, by a schedule, and
serves the records as metrics for Prometheus, by default on port 8080. It stays in
the foreground until a signal ends it.
.PP
Settings are variables of the environment. As a service they stand in
.IR /etc/api\\-exporter/config ;
the lines that are needed are
.B UPSTREAM_API_URL
and
.BR UPSTREAM_API_TOKEN .
.B api\\-exporter \\-\\-settings
prints all of them with their meanings and defaults. Then
.PP
.nf
.RS
api\\-exporter \\-\\-check \\-\\-config /etc/api\\-exporter/config
.RE
.fi
.PP
says what is wrong, and
.B systemctl enable \\-\\-now api\\-exporter
starts the service.
"""

TAIL = """\
.SH EXIT STATUS
.TP
.B 0
SIGTERM ended it, or there is no problem.
.TP
.B 1
It could not start, or
.B \\-\\-check
and
.B \\-\\-once
could not read the peers. The problem may end without you.
.TP
.B 2
.B \\-\\-health
found a problem.
.PP
With
.BR \\-\\-check " " \\-\\-strict :
1 for a warning or a resource that could not be read, 2 for a critical finding, 3 where
the peers could not be read.
.TP
.B 78
A setting or an option is wrong: correct it.
.SH FILES
.TP
.I /etc/api\\-exporter/config
Settings of the service: NAME=value lines and comments.
.TP
.I /usr/share/api\\-exporter/
Of the Debian package: settings, drop-ins, rules and alerts for Prometheus, dashboards
for Grafana.
.TP
.I /usr/share/doc/api\\-exporter/
Of the Debian package:
.IR runbooks.html ,
.IR troubleshooting.md ,
.IR reference.md ,
.IR security.md ,
.IR logs.md ,
.IR accounts.md
and
.IR metrics.md ;
in
.I examples/
rules of a firewall, logrotate, and probes of NetBird's own servers.
.SH SEE ALSO
.BR prometheus (1),
.BR systemctl (1).
.B api\\-exporter \\-\\-runbook
.I ALERT
prints what to do, and
.I http://localhost:8080/runbooks
has all of it.
"""


def manual() -> str:
    made = _synopsis(), [DESCRIPTION], _options()
    return "".join(chain([HEAD], *made, [TAIL]))


def _synopsis() -> Iterator[str]:
    lines = CommandOptions.synopsis.removeprefix("Usage:").splitlines()
    yield "\n.br\n".join(_text(line.strip()) for line in lines) + "\n"


def _options() -> Iterator[str]:
    yield ".SH OPTIONS\n"
    for name, short, meaning in CommandOptions.optFlags:
        yield _option(str(name), short, str(meaning))
    for name, short, _, meaning in CommandOptions.optParameters:
        # The help calls it FILE or NAME in its synopsis.
        found = re.search(rf"--{name} ([A-Z]+)", CommandOptions.synopsis)
        assert found is not None, name
        yield _option(str(name), short, str(meaning), found[1])
    yield _option("version", None, "Print the version and exit.")
    yield _option("help", None, "Print the options and exit.")


def _option(name: str, short: str | None, meaning: str, value: str = "") -> str:
    names = [f"-{short}"] if short else []
    shown = ", ".join(f"\\fB{_text(x)}\\fR" for x in [*names, f"--{name}"])
    argument = f" \\fI{value}\\fR" if value else ""
    return f".TP\n{shown}{argument}\n{_text(meaning)}\n"


def _text(words: str) -> str:
    """Convert Markdown to roff: bold names, and links without their addresses."""
    words = plain(words).replace("\\", "\\e").replace("-", "\\-").replace("’", "'")
    return re.sub(r"`([^`]*)`", r"\\fB\1\\fR", words)
