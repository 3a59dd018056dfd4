"""Audit events and the access log: killed processes, and documented log shippers."""

import re
import socket
import time
from contextlib import suppress
from pathlib import Path

from api_exporter.logs.lines import event_line, row_line
from checks.acceptance.check import (
    MAX_WAIT,
    ROOT,
    Failed,
    go_build,
    program,
    run,
    run_tests,
    running,
)
from tests.deploy.programs import blocks
from tests.logs import events
from tests.logs.paging import requests

KILLS = 200

PARSER = ROOT / "checks" / "acceptance" / "alloy_syntax"


def kills(folder: Path) -> str:
    """Check that each of 20,000 events is written once."""
    test = "tests.integration.test_events.KillTests"
    run_tests(test, folder=folder, env={"EVENTS_KILLS": str(KILLS)})
    return f"{KILLS} kills, {KILLS * 100} events, each of them once"


def alloy(folder: Path) -> str:
    """Check the documents' examples and the shipped file with Alloy's parser."""
    parser = folder / "parser"
    go_build(parser, ".", PARSER)
    run(parser, ROOT / "deploy/monitoring/peers.alloy")
    for page in EXAMPLES:
        file = folder / f"{page}.alloy"
        file.write_text(_example(page, "alloy"))
        run(parser, file)
    return "its syntax; neither its components nor their arguments"


def rsyslog(folder: Path) -> str:
    """Check that the documented rsyslog ships each line once across a rotation."""
    daemon = program("rsyslogd")
    first, second = (_example(page, "rsyslog") for page in EXAMPLES)
    both = folder / "both.conf"
    both.write_text(
        f'global(workDirectory="{folder}")\n'
        + first
        + re.sub(r"^(global|module)\(.*\n", "", second, flags=re.MULTILINE)
    )
    run(daemon, "-N1", "-f", both)
    for page, lines in EXAMPLES.items():
        own = folder / page
        own.mkdir()
        _check_shipping(daemon, own, _example(page, "rsyslog"), lines)
    return "400 lines of each log over TCP, a rotation between them"


def _check_shipping(daemon: Path, folder: Path, text: str, lines: list[bytes]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        text = text.replace("/var/log/api-exporter", str(folder))
        text = text.replace(
            '"logs.example.com" port="514"', f'"127.0.0.1" port="{port}"'
        )
        config = folder / "rsyslog.conf"
        config.write_text(f'global(workDirectory="{folder}")\n{text}')
        [name] = re.findall(r'file="([^"]*)"', text)
        file = Path(name)
        file.write_bytes(b"".join(lines[:200]))
        command = (daemon, "-n", "-f", config, "-i", folder / "pid")
        with running(*command, log=folder / "rsyslog.log"):
            listening.settimeout(MAX_WAIT)
            try:
                reading, _ = listening.accept()
            except TimeoutError:
                raise Failed("rsyslog does not connect") from None
            with reading:
                got = _read(reading, 200)
                file.rename(f"{file}.1")
                file.write_bytes(b"".join(lines[200:]))
                got += _read(reading, 200)
                got += _read(reading, 1, max_wait=2)
    found = [one[one.index(b"{") :] + b"\n" for one in got.splitlines()]
    if found != lines:
        raise Failed(f"{len(found)} lines of 400, {len(set(found))} of them different")


def _example(page: str, language: str) -> str:
    """Return the example in a language, with the replacements for the access log."""
    [example] = blocks("logs.md", language)
    if page == "access-log":
        text = (ROOT / "docs/logs.md").read_text()
        for old, new in re.findall(r"(?m)^\| `([^`]+)` \| `([^`]+)` \|$", text):
            example = example.replace(old, new)
    return example


EXAMPLES = {
    "events": [event_line(one, "acme", frozenset()) for one in events(range(1, 401))],
    "access-log": [
        row_line(one, "acme", frozenset())
        for first in range(1, 401, 100)
        for one in requests(range(first, first + 100))
    ],
}
"""The lines of each log, by its page."""


def _read(reading: socket.socket, lines: int, max_wait: float = MAX_WAIT) -> bytes:
    """Return this number of lines, or those that arrived in time."""
    got = b""
    end = time.monotonic() + max_wait
    with suppress(TimeoutError):
        while got.count(b"\n") < lines:
            reading.settimeout(max(end - time.monotonic(), 0.001))
            more = reading.recv(65536)
            if not more:
                break
            got += more
    return got
