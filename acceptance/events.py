"""Audit events, with a process that is killed two hundred times, and their shippers."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from acceptance.check import ROOT, Failed, Missing, go, program, run
from api_exporter.events.telling import line
from tests.events import events

KILLS = 200

PARSER = ROOT / "acceptance" / "alloy_syntax"

PATIENCE = 30.0
"""Seconds for lines to arrive."""


def kills(folder: Path) -> str:
    """Each of 20,000 events is written once."""
    run(
        *(
            sys.executable,
            "-m",
            "twisted.trial",
            f"--temp-directory={folder / 'trial'}",
        ),
        "tests.integration.test_events.KillTests",
        env={"EVENTS_KILLS": str(KILLS)},
    )
    return f"{KILLS} kills, {KILLS * 100} events, each of them once"


def alloy(folder: Path) -> str:
    """Alloy's parser takes the documents' example and the file that is shipped."""
    parser = folder / "parser"
    try:
        run(go(), "build", "-o", parser, ".", cwd=PARSER)
    except Failed as error:
        raise Missing(str(error)) from None
    file = folder / "config.alloy"
    file.write_text(_documented("alloy"))
    for each in (file, ROOT / "deploy/monitoring/peers.alloy"):
        run(parser, each)
    return "its syntax; neither its components nor their arguments"


def rsyslog(folder: Path) -> str:
    """What the documents show for rsyslog ships each line once, over a rotation."""
    daemon = program("rsyslogd")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        text = _documented("rsyslog")
        text = text.replace("/var/log/api-exporter", str(folder))
        text = text.replace(
            '"logs.example.com" port="514"', f'"127.0.0.1" port="{port}"'
        )
        config = folder / "rsyslog.conf"
        config.write_text(f'global(workDirectory="{folder}")\n{text}')
        file = folder / "events.jsonl"
        _write(file, range(1, 201))
        command = (daemon, "-n", "-f", config, "-i", folder / "pid")
        with subprocess.Popen(command) as process:
            try:
                listening.settimeout(PATIENCE)
                reading, _ = listening.accept()
                with reading:
                    got = _read(reading, 200)
                    file.rename(folder / "events.jsonl.1")
                    _write(file, range(201, 401))
                    got += _read(reading, 200)
                    got += _read(reading, 1, patience=2)
            except TimeoutError:
                raise Failed("rsyslog does not connect") from None
            finally:
                process.terminate()
    found = [int(json.loads(one[one.index(b"{") :])["id"]) for one in got.splitlines()]
    if found != list(range(1, 401)):
        raise Failed(f"{len(found)} lines of 400, {len(set(found))} of them different")
    return "400 lines over TCP, a rotation between them"


def _documented(language: str) -> str:
    """The example of docs/events.md in that language."""
    text = (ROOT / "docs" / "events.md").read_text()
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(found)


def _write(file: Path, numbers: Iterable[int]) -> None:
    lines = [line(event, "acme", frozenset()) for event in events(numbers)]
    with file.open("ab") as opened:
        opened.write(b"".join(lines))


def _read(reading: socket.socket, lines: int, patience: float = PATIENCE) -> bytes:
    """So many lines, or what came of them in time."""
    got = b""
    end = time.monotonic() + patience
    with suppress(TimeoutError):
        while got.count(b"\n") < lines:
            reading.settimeout(max(end - time.monotonic(), 0.001))
            more = reading.recv(65536)
            if not more:
                break
            got += more
    return got
