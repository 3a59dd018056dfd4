"""The shipped configuration file in an OpenTelemetry Collector."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from acceptance.check import BUILD, ROOT, Failed, Missing, go, run
from tests.integration.programs import environment, free_port, get

SOURCE = ROOT / "acceptance" / "otel_collector"

ACCOUNTS = 3

MAX_WAIT = 60.0
"""Seconds until the collector must have found and read the accounts."""


def collector(folder: Path) -> str:
    """Check that its receiver finds and reads each account by `/sd/accounts`."""
    program = _build()
    port = free_port()
    config = folder / "collector.yml"
    config.write_text(_config(port))
    run(program, "validate", f"--config={config}")
    demo = environment(
        DEMO_ACCOUNTS=f"{ACCOUNTS}",
        DEMO_PEERS="10",
        LISTEN_ADDRESS=f"127.0.0.1:{port}",
    )
    exporter = (sys.executable, "-m", "api_exporter", "--demo")
    with _running(exporter, folder / "exporter.log", demo):
        accounts = _accounts(port)
        log = folder / "collector.log"
        with _running((program, f"--config={config}"), log, os.environ):
            end = time.monotonic() + MAX_WAIT
            while (found := _read(log)) < accounts:
                if time.monotonic() > end:
                    raise Failed(f"{found} of {accounts}\n{log.read_text()[-2000:]}")
                time.sleep(0.5)
    names = ", ".join(sorted(accounts))
    return f"its receiver reads the accounts {names}; another exporter than the file's"


def _build() -> Path:
    """Build a collector that prints: the file's exporter cannot be built here."""
    made = BUILD / "bin" / "otel_collector"
    if not made.exists():
        work = BUILD / "otel_collector"
        shutil.copytree(SOURCE, work, dirs_exist_ok=True)
        # Without the ways to find targets that need a vendor's library.
        command = ("build", "-mod=mod", "-tags=remove_all_sd", "-o", made, ".")
        try:
            run(go(), *command, cwd=work)
        except Failed as error:
            raise Missing(str(error)) from None
    return made


def _config(port: int) -> str:
    """Return the file with short intervals, for an exporter on this port."""
    text = (ROOT / "deploy/monitoring/collector.yml").read_text()
    text = text.replace("api-exporter:8080", f"127.0.0.1:{port}").replace("30s", "1s")
    text = re.sub(r"otlphttp:\n.*", "debug: {verbosity: detailed}", text)
    text = text.replace("[otlphttp]", "[debug]")
    return f"{text}  telemetry: {{metrics: {{level: none}}}}\n"  # needs a port


def _accounts(port: int) -> set[str]:
    """Return the accounts that service discovery lists. Wait until it does."""
    end = time.monotonic() + MAX_WAIT
    while (answer := get(f"http://127.0.0.1:{port}/sd/accounts"))[0] != 200:
        if time.monotonic() > end:
            raise Failed(f"/sd/accounts: {answer[0]}")
        time.sleep(0.2)
    return {one["labels"]["account"] for one in json.loads(answer[2])}


def _read(log: Path) -> set[str]:
    """Return the accounts whose metrics the collector has printed."""
    return set(re.findall(r"-> account: Str\((.*)\)", log.read_text()))


@contextmanager
def _running(
    command: tuple[str | Path, ...], log: Path, env: Mapping[str, str]
) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(MAX_WAIT)
