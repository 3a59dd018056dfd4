"""A gateway fails: the film of docs/images, from `python -m tools.film`.

The demo, Prometheus with the shipped rules, and the viewer of the dashboards run for
seven minutes. The film is an SVG of their pictures, which need npm and chromium.
"""

import base64
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from checks.acceptance.boards import BOARDS, build_viewer
from checks.acceptance.check import ROOT, program, run, running, until
from checks.acceptance.simulated import demo
from tests.integration.programs import free_port, scraped

FILM = ROOT / "docs/images/gateway.svg"

WIDTH, HEIGHT = 1200, 760

SECONDS = 4
"""Seconds of a picture."""

LOST = "NetBirdNetworkUnreachable"

_HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 56}"'
    ' font-family="sans-serif" font-size="26">'
    '<rect width="100%" height="100%" fill="#111217"/>\n'
)

_PICTURE = (
    '<g visibility="hidden"><animate attributeName="visibility" calcMode="discrete"'
    ' values="hidden;visible;hidden" keyTimes="0;{begin};{end}" dur="{seconds}s"'
    ' repeatCount="indefinite"/><text x="24" y="37" fill="#fff">{words}</text>'
    '<image y="56" width="{width}" height="{height}"'
    ' href="data:image/webp;base64,{data}"/></g>\n'
)


class Film:
    """Pictures with words, in their order."""

    def __init__(self, viewer: Path, folder: Path) -> None:
        self._viewer = viewer
        self._folder = folder
        self._pictures: list[tuple[str, bytes]] = []

    def take(self, words: str, **job: object) -> None:
        """Add a picture of a page (`url`) or of a board (`query`, `port`, `now`)."""
        sys.stdout.write(f"{words}\n")
        out, jobs = self._folder / "one.webp", self._folder / "jobs.json"
        jobs.write_text(json.dumps([{"out": str(out), "width": WIDTH, **job}]))
        shoot = (program("node"), "shoot.js", BOARDS, jobs)
        run(*shoot, cwd=self._viewer, stderr=subprocess.PIPE)
        self._pictures.append((words, out.read_bytes()))

    def svg(self) -> str:
        """Return the film, which begins again at its end."""
        count = len(self._pictures)
        pictures = [
            _PICTURE.format(
                words=words,
                data=base64.b64encode(picture).decode(),
                begin=number / count,
                end=(number + 1) / count,
                seconds=SECONDS * count,
                width=WIDTH,
                height=HEIGHT,
            )
            for number, (words, picture) in enumerate(self._pictures)
        ]
        return "".join([_HEAD, *pictures, "</svg>\n"])


def main() -> None:
    viewer = build_viewer()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = Film(viewer, folder)
        with demo(folder, DEMO_FAULT="gateway", DEMO_PEERS="200") as port:
            _play(film, f"http://127.0.0.1:{port}", folder)
    FILM.write_text(film.svg(), encoding="utf-8")


def _play(film: Film, exporter: str, folder: Path) -> None:
    prometheus = f"http://127.0.0.1:{free_port()}"
    log = folder / "prometheus.log"
    with running(*_prometheus(prometheus, exporter, folder), log=log):
        until(lambda: scraped(f"{exporter}/status.json", "peers"), log.read_text)
        targets = f"{prometheus}/api/v1/targets"
        until(lambda: scraped(targets, '"success"'), log.read_text)
        film.take("DEMO_FAULT=gateway make run: the status page", url=f"{exporter}/")
        lost = f'{{finding="{LOST}",object="lab"'
        until(lambda: scraped(f"{exporter}/metrics", lost), log.read_text, 120)
        film.take(
            "A minute later, the last gateway of a network is off", url=f"{exporter}/"
        )
        firing = f'ALERTS{{alertname="{LOST}",network="lab",alertstate="firing"}}'
        asked = f"{prometheus}/api/v1/query?query={firing}"
        until(lambda: scraped(asked, '"lab"'), log.read_text, 420)
        board = {"board": "network", "theme": "dark", "interval": 15}
        film.take(
            "The dashboard: what is broken, and since when",
            query=board,
            port=int(prometheus.rpartition(":")[2]),
            now=datetime.now(UTC).timestamp(),
        )
        asked = f"ALERTS%7Balertname%3D%22{LOST}%22%7D"
        alerts = f"{prometheus}/graph?g0.tab=1&g0.expr={asked}"
        film.take("Five minutes later, the alert fires", url=alerts)
        runbook = f"{exporter}/runbooks#{LOST}"
        film.take("Its runbook says what to do", url=runbook)


def _prometheus(address: str, exporter: str, folder: Path) -> tuple[str | Path, ...]:
    """Return the command of a Prometheus with the shipped configuration."""
    files = ROOT / "deploy/prometheus"
    text = (files / "prometheus.yml").read_text()
    text = text.replace("api-exporter:8080", exporter.removeprefix("http://"))
    for name in ("rules.yml", "alerts.yml"):
        (folder / name).write_bytes((files / name).read_bytes())
    (folder / "prometheus.yml").write_text(text.replace("30s", "15s"))
    return (
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address.removeprefix('http://')}",
    )


if __name__ == "__main__":
    main()
