"""The dashboards as people see them: all boards in five situations, as pictures.

They are drawn from simulated hours with Grafana's own components
(`deploy/grafana/viewer`), and without a Grafana. Pictures are in `build/boards`. They
look best with Debian's fonts-inter and fonts-noto-cjk.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct

from api_exporter.demo.server import DEMO_TOKEN, tokens
from checks.acceptance.check import (
    BUILD,
    ROOT,
    Failed,
    Missing,
    listens,
    program,
    run,
    running,
    until,
)
from checks.acceptance.recorded import DATABASE, Exporter, record
from simulation.company.network import SimulatedNetwork
from tests.integration.programs import free_port

BOARDS = ROOT / "deploy/grafana/dashboards"

PICTURES = ROOT / "build/boards"

PEERS = 200

HOURS = 7
"""The six hours of a board, and one before for comparisons with an hour ago."""

TUESDAY = datetime(2026, 11, 24, 10, tzinfo=UTC).timestamp()

SUNDAY = datetime(2026, 11, 22, 2, 14, tzinfo=UTC).timestamp()
"""The servers' line was cut fourteen minutes ago."""


class Situation(Struct, frozen=True):
    """A situation, and the verdict that "Network" must have."""

    verdict: str
    exporters: Callable[[], list[Exporter]]
    now: float = TUESDAY


def _healed(path: str, body: bytes) -> bytes:
    """Return the body for a company whose gateways are up and whose keys are unused."""
    if path == "/api/peers":
        records = json.loads(body)
        for one in records:
            one["connected"] = one["connected"] or one["name"].startswith("gw-")
        return json.dumps(records).encode()
    if path == "/api/setup-keys":
        records = [one | {"used_times": 0} for one in json.loads(body)]
        return json.dumps(records).encode()
    return b"[]" if path.endswith("/consumption") else body


def _alone(**more: Any) -> Exporter:
    networks = {DEMO_TOKEN: SimulatedNetwork(PEERS)}
    return Exporter(networks, {"UPSTREAM_API_TOKEN": DEMO_TOKEN}, **more)


def _three_accounts() -> Exporter:
    """Return an exporter of three accounts, the second of which has no valid token."""
    folder = PICTURES / "accounts"
    folder.mkdir(parents=True, exist_ok=True)
    secrets = tokens(3)
    for name, token in secrets.items():
        (folder / f"{name}.conf").write_text(f"UPSTREAM_API_TOKEN_FILE={name}.token\n")
        (folder / f"{name}.token").write_text(token)
        (folder / f"{name}.token").chmod(0o600)
    first, _, last = secrets.values()
    sizes = {first: PEERS // 4, last: PEERS // 2}
    networks = {token: SimulatedNetwork(size) for token, size in sizes.items()}
    return Exporter(networks, {"ACCOUNTS_DIR": str(folder)}, accounts=tuple(secrets))


SITUATIONS = {
    "healthy": Situation("all right", lambda: [_alone(change=_healed)]),
    "outage": Situation("critical", lambda: [_alone()], SUNDAY),
    "exporter-down": Situation("no answer", lambda: [_alone(down=1200)]),
    "account-dead": Situation("NetBird not read", lambda: [_three_accounts()]),
    "two-exporters": Situation(
        "all right",
        lambda: [
            _alone(change=_healed, instance=instance)
            for instance in ("first:8080", "second:8080")
        ],
    ),
}


def check(folder: Path) -> str:
    """Draw all boards in all situations, dark and light, on a large and a small screen.
    Check what a program can see of them.
    """
    viewer = build_viewer()
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    found: list[dict[str, Any]] = []
    for name, situation in SITUATIONS.items():
        print(f"  {name}", flush=True)
        place = folder / name
        place.mkdir()
        begin = situation.now - HOURS * 3600
        for exporter in situation.exporters():
            record(exporter, begin, situation.now, place)
        found += _draw(viewer, name, situation, place)
    (PICTURES / "seen.json").write_text(json.dumps(found, indent=1))
    faults = [f"{one['name']}: {fault}" for one in found for fault in one["faults"]]
    if faults:
        raise Failed("\n".join(faults))
    queries = [query for one in found for query in one["queries"]]
    empty = sum(query["series"] == 0 for query in queries)
    return f"{len(found)} pictures, {len(queries)} queries, {empty} empty, no fault"


def build_viewer() -> Path:
    """Build the viewer outside of the tree, where npm's packages stay."""
    npm, viewer = program("npm"), BUILD / "viewer"
    program("chromium")
    shutil.copytree(ROOT / "deploy/grafana/viewer", viewer, dirs_exist_ok=True)
    try:
        run(npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", cwd=viewer)
    except Failed as error:
        raise Missing(f"npm: {error}") from None
    run(npm, "exec", "--", "vite", "build", cwd=viewer)
    return viewer


def _draw(
    viewer: Path, name: str, situation: Situation, folder: Path
) -> Iterator[dict[str, Any]]:
    port = free_port()
    command = (
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / DATABASE}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    (folder / "prometheus.yml").touch()
    log = folder / "prometheus.log"
    with running(*command, log=log):
        until(lambda: listens(port), log.read_text)
        jobs = [
            {
                "name": f"{name}-{board}-{width}-{theme}",
                "out": str(PICTURES / f"{name}-{board}-{width}-{theme}.png"),
                "query": {"board": board, "theme": theme, "interval": 60},
                "width": width,
                "port": port,
                "now": situation.now,
            }
            for board, width, theme in product(
                sorted(path.stem for path in BOARDS.glob("*.json")),
                (1600, 800),
                ("dark", "light"),
            )
        ]
        (folder / "jobs.json").write_text(json.dumps(jobs))
        shoot = (program("node"), "shoot.js", BOARDS, folder / "jobs.json")
        drawn = run(*shoot, cwd=viewer, stderr=subprocess.PIPE).splitlines()
    for job, line in zip(jobs, drawn, strict=True):
        seen = json.loads(line)
        faults = [*seen["faults"], *_faults(seen, situation)]
        yield seen | {"name": job["name"], "faults": faults}


def _faults(seen: Mapping[str, Any], situation: Situation) -> Iterator[str]:
    """Yield errors, and the wrong verdict of a board that has one."""
    yield from seen["errors"]
    yield from (query["error"] for query in seen["queries"] if "error" in query)
    verdict = seen["panels"].get("The network", [situation.verdict])
    if verdict != [situation.verdict]:
        yield f"the verdict is {verdict}, not {situation.verdict}"
