"""The shipped configuration file in an OpenTelemetry Collector."""

import json
import re
import shutil
from pathlib import Path

from checks.acceptance.check import BUILD, ROOT, go_build, run, running, until
from checks.acceptance.simulated import demo
from tests.integration.programs import get

SOURCE = ROOT / "checks" / "acceptance" / "otel_collector"

ACCOUNTS = 3


def collector(folder: Path) -> str:
    """Check that its receiver finds and reads each account by `/sd/accounts`."""
    program = _build()
    config = folder / "collector.yml"
    with demo(folder, DEMO_ACCOUNTS=f"{ACCOUNTS}") as port:
        config.write_text(_config(port))
        run(program, "validate", f"--config={config}")
        url = f"http://127.0.0.1:{port}/sd/accounts"
        until(lambda: get(url)[0] == 200, lambda: f"{url}: {get(url)[0]}")
        accounts = {one["labels"]["account"] for one in json.loads(get(url)[2])}
        log = folder / "collector.log"
        with running(program, f"--config={config}", log=log):
            until(
                lambda: _read(log) >= accounts,
                lambda: f"{_read(log)} of {accounts}\n{log.read_text()[-2000:]}",
            )
    names = ", ".join(sorted(accounts))
    return f"its receiver reads the accounts {names}; another exporter than the file's"


def _build() -> Path:
    """Build a collector that prints: the file's exporter cannot be built here."""
    made = BUILD / "bin" / "otel_collector"
    if not made.exists():
        work = BUILD / "otel_collector"
        shutil.copytree(SOURCE, work, dirs_exist_ok=True)
        # Without the ways to find targets that need a vendor's library.
        go_build(made, ".", work, "-mod=mod", "-tags=remove_all_sd")
    return made


def _config(port: int) -> str:
    """Return the file with short intervals, for an exporter on this port."""
    text = (ROOT / "deploy/monitoring/collector.yml").read_text()
    text = text.replace("api-exporter:8080", f"127.0.0.1:{port}").replace("30s", "1s")
    text = re.sub(r"otlphttp:\n.*", "debug: {verbosity: detailed}", text)
    text = text.replace("[otlphttp]", "[debug]")
    return f"{text}  telemetry: {{metrics: {{level: none}}}}\n"  # needs a port


def _read(log: Path) -> set[str]:
    """Return the accounts whose metrics the collector has printed."""
    return set(re.findall(r"-> account: Str\((.*)\)", log.read_text()))
