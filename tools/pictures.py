"""Take the pictures of the status page for docs/images: `python -m tools.pictures`.

It needs chromium, and Debian's fonts-droid-fallback. Reduce them to 96 colours.
"""

import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.task import react
from twisted.web.server import Site

from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import COLLECTORS
from simulation.company.incidents import GATEWAYS_UPDATE
from simulation.company.schedules import WEEK
from tests.integration.browser import Browser
from tests.integration.programs import program
from tests.web.watched import QUIET, Watched
from tools.prometheus import ROOT

IMAGES = ROOT / "docs/images"

WIDTH = 1080

ATTENTION = "section.attention"


async def take(reactor: PosixReactorBase, folder: Path) -> None:
    """Take each picture: the page, and its findings, few, many, none or unknown."""
    default = [c.name for c in COLLECTORS if c.default]
    whole = Watched(collectors=default, peers=220, pprof=True).start(5.2 * 3600 + 4)
    few = Watched(collectors=default, peers=220).start(700)
    many = Watched(collectors=default, peers=4000)
    many.clock.advance(GATEWAYS_UPDATE.start(many.now() + WEEK) + 300 - many.now())
    many.start(60)
    quiet = Watched(peers=14)
    quiet.bodies = {**QUIET}
    quiet.start(60)
    site = Site(whole.tree)
    endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
    port = await endpoint.listen(site)
    browser = Browser()
    await browser.start(program("chromium"), folder / "profile")
    for name, watched, height, selector in (
        ("status-light", whole, 950, ""),
        ("status-dark", whole, 950, ""),
        ("status-failing", whole, 1420, ""),
        ("attention-few", few, 1900, ATTENTION),
        ("attention-many", many, 1900, ATTENTION),
        ("attention-nothing", quiet, 1900, ATTENTION),
        ("attention-unknown", few, 1900, ATTENTION),
    ):
        if name.endswith(("failing", "unknown")):
            words = "401: the NetBird API rejects the token"
            watched.down = UpstreamError("auth", words)
            watched.advance(720)
        site.resource = watched.tree
        await browser.screen(WIDTH, height)
        await browser.scheme("dark" if name.endswith("dark") else "light")
        await browser.visit(f"http://127.0.0.1:{port.getHost().port}/")
        picture = await browser.picture(selector)
        (IMAGES / f"{name}.png").write_bytes(picture)
    await browser.end()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        react(lambda reactor: Deferred.fromCoroutine(take(reactor, folder)))


if __name__ == "__main__":
    main()
