"""The status page in a real browser: what it shows, where, and how it stays fresh.

With STATUS_IMAGES set to a directory, the pictures for the documentation go there.
"""

import base64
import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred, fail
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import Site

from api_exporter.ports import UpstreamError
from api_exporter.report.words import NO_PROBLEM
from api_exporter.subjects.table import COLLECTORS
from simulation.company.incidents import GATEWAYS_UPDATE
from simulation.company.schedules import WEEK
from tests.integration.programs import PATIENCE, program
from tests.web.watched import QUIET, Watched

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)

Json = dict[str, object]

REFUSED = UpstreamError("auth", "401: the NetBird API rejects the token")


class Browser(ProcessProtocol):
    """Headless Chromium, by its DevTools protocol: JSON with a zero byte after it."""

    _asked: IProcessTransport

    def __init__(self) -> None:
        self.ended: Deferred[None] = Deferred()
        self.loaded: Deferred[None] = Deferred()
        self.console: list[object] = []
        self.target: object = None
        self._answers: dict[int, Deferred[Json]] = {}
        self._numbers: Iterator[int] = count(1)
        self._waiting = b""
        self._session = ""

    def childDataReceived(self, childFD: int, data: bytes) -> None:  # noqa: N802, N803
        if childFD != 4:
            return
        *messages, self._waiting = (self._waiting + data).split(b"\0")
        for message in messages:
            self._received(json.loads(message))

    def _received(self, message: Json) -> None:
        number = message.get("id")
        if isinstance(number, int):
            answer = self._answers.pop(number)
            if "error" in message:
                answer.errback(AssertionError(message["error"]))
            else:
                answer.callback(_object(message["result"]))
        elif message["method"] == "Page.loadEventFired" and not self.loaded.called:
            self.loaded.callback(None)
        elif message["method"] in {"Log.entryAdded", "Runtime.exceptionThrown"}:
            self.console.append(message["params"])

    def processEnded(self, reason: Failure) -> None:  # noqa: N802
        for answer in self._answers.values():
            answer.errback(AssertionError(f"the browser has gone: {reason.value}"))
        self.ended.callback(None)

    def call(self, method: str, **params: object) -> Deferred[Json]:
        if self.ended.called:
            return fail(AssertionError("the browser has gone"))
        number = next(self._numbers)
        message: Json = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        assert self.transport is not None
        self.transport.writeToChild(3, json.dumps(message).encode() + b"\0")
        answer: Deferred[Json] = Deferred()
        self._answers[number] = answer
        return answer.addTimeout(PATIENCE, reactor)

    async def open(self) -> None:
        """A tab of our own."""
        created = await self.call("Target.createTarget", url="about:blank")
        self.target = created["targetId"]
        attached = await self.call(
            "Target.attachToTarget", targetId=self.target, flatten=True
        )
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Log", "Runtime"):
            await self.call(f"{domain}.enable")

    async def visit(self, url: str) -> None:
        self.loaded = Deferred()
        await self.call("Page.navigate", url=url)
        await self.loaded.addTimeout(PATIENCE, reactor)

    async def value(self, expression: str) -> object:
        """Return the value of a JavaScript expression."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return _object(answer["result"]).get("value")

    async def screen(self, width: int, height: int, *, mobile: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    async def scheme(self, name: str) -> None:
        """Light or dark."""
        await self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": name}],
        )

    async def picture(self, selector: str = "") -> bytes:
        """The screen, or what an element takes of the page, as PNG."""
        clip: Json = {"format": "png"}
        if selector:
            box = await self.value(
                f"document.querySelector('{selector}').getBoundingClientRect().toJSON()"
            )
            clip = {"format": "png", "clip": {**_object(box), "scale": 1}}
        answer = await self.call("Page.captureScreenshot", **clip)
        return base64.b64decode(str(answer["data"]))


def _object(value: object) -> Json:
    assert isinstance(value, dict)
    return value


CONTRAST = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const numbers = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((part) => part / 255).map((part) =>
      part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = numbers(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const bad = [];
  for (const element of document.body.querySelectorAll("*")) {
    const words = [...element.childNodes].some(
      (node) => node.nodeType === 3 && node.data.trim());
    if (!words || !element.checkVisibility()) continue;
    if (element.closest("script, svg")) continue;
    const [one, other] = [
      light(numbers(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) bad.push([element.outerHTML.slice(0, 80), ratio]);
  }
  return bad;
})()
"""
"""Texts that WCAG AA finds too faint."""


class CountingSite(Site):
    """A site that records the requested paths."""

    def __init__(self, watched: Watched) -> None:
        super().__init__(watched.tree)
        self.asked: list[str] = []

    def log(self, request: Request) -> None:
        self.asked.append(request.path.decode())


class StatusPageTests(TestCase):
    timeout = 3 * PATIENCE

    async def opened(self, watched: Watched) -> Browser:
        """A browser that shows the page; both end with the test."""
        executable = program("chromium")
        self.site = CountingSite(watched)
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = await endpoint.listen(self.site)
        self.addCleanup(port.stopListening)
        self.port = port
        self.url = f"http://127.0.0.1:{port.getHost().port}/"
        profile = Path(self.mktemp())
        profile.mkdir(parents=True)
        browser = Browser()
        process = reactor.spawnProcess(
            browser,
            executable,
            [executable, *FLAGS.split(), f"--user-data-dir={profile.resolve()}"],
            env={**os.environ, "HOME": str(profile.resolve())},
            childFDs={0: "w", 1: "r", 2: "r", 3: "w", 4: "r"},
        )
        self.addCleanup(self._end, browser, process)
        await browser.open()
        await browser.visit(self.url)
        return browser

    async def _end(self, browser: Browser, process: IProcessTransport) -> None:
        if not browser.ended.called:
            browser.call("Browser.close").addErrback(lambda _: None)
            killing = reactor.callLater(5, process.signalProcess, "KILL")
            await browser.ended
            if killing.active():
                killing.cancel()

    async def until(self, browser: Browser, expression: str) -> None:
        """Wait, within reason, until an expression is true."""
        for _ in range(int(10 * PATIENCE)):
            if await browser.value(expression):
                return
            await deferLater(reactor, 0.1)
        shown = await browser.value("document.body.innerText")
        self.fail(f"never true: {expression}\n{shown}")

    async def test_nothing_else(self) -> None:
        """The browser needs nothing but the page itself, and no script to show it."""
        browser = await self.opened(Watched().start())
        self.assertEqual({"/"}, set(self.site.asked))
        await browser.call("Emulation.setScriptExecutionDisabled", value=True)
        await browser.visit(self.url)
        self.assertIn(
            "Reading NetBird: yes", str(await browser.value("document.body.innerText"))
        )
        self.assertEqual({"/"}, set(self.site.asked))

    async def test_narrow(self) -> None:
        """On no screen does anything have to be scrolled sideways."""
        watched = Watched(collectors=[c.name for c in COLLECTORS]).start(3600)
        watched.faults["api/groups"] = UpstreamError("http_5xx", "500: " + 190 * "x")
        browser = await self.opened(watched.advance(400))
        for width in (320, 360, 700, 768, 1280):
            await browser.screen(width, 800, mobile=width < 700)
            await browser.visit(self.url)
            self.assertEqual(width, await browser.value("innerWidth"))
            self.assertEqual(
                width, await browser.value("document.documentElement.scrollWidth")
            )
            hidden = await browser.value(
                "[...document.querySelectorAll('.box')]"
                ".filter(box => box.scrollWidth > box.clientWidth).length"
            )
            self.assertEqual(0, hidden, width)

    async def needy(self) -> Browser:
        """A page with much to attend to, and failures."""
        watched = Watched(collectors=[c.name for c in COLLECTORS], peers=60).start(3600)
        watched.faults["api/users"] = REFUSED
        return await self.opened(watched.advance(700))

    async def test_contrast(self) -> None:
        """All text can be read, light and dark, on a screen and on a telephone."""
        browser = await self.needy()
        for scheme in ("light", "dark"):
            for width in (360, 1280):
                await browser.scheme(scheme)
                await browser.screen(width, 800, mobile=width < 700)
                for path in ("", "findings"):
                    await browser.visit(self.url + path)
                    shown = (scheme, width, path)
                    self.assertEqual([], await browser.value(CONTRAST), shown)
                    self.assertEqual(width, await browser.value("innerWidth"), shown)

    async def test_keyboard(self) -> None:
        """The tab key reaches each visible link and fold, and a refresh leaves it where
        it was, and folds as they were.
        """
        browser = await self.needy()
        stops = (
            "[...document.querySelectorAll('a, summary')]"
            ".filter(one => one.checkVisibility())"
        )
        links = await browser.value(f"{stops}.length")
        assert isinstance(links, int)
        reached = set()
        for _ in range(links):
            for kind in ("rawKeyDown", "keyUp"):
                await browser.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key="Tab",
                    code="Tab",
                    windowsVirtualKeyCode=9,
                )
            reached.add(await browser.value(f"{stops}.indexOf(document.activeElement)"))
        self.assertEqual(set(range(links)), reached)
        await browser.value("document.querySelector('.findings a').focus()")
        name = await browser.value("document.activeElement.ariaLabel")
        await browser.value("window.old = document.activeElement")
        await browser.value("document.querySelector('details').open = true")
        await self.until(browser, "!old.isConnected")
        self.assertIs(
            True, await browser.value("document.querySelector('details').open")
        )
        self.assertEqual(name, await browser.value("document.activeElement.ariaLabel"))

    async def test_refresh(self) -> None:
        """The page updates in place, without a jump, and shows a lost connection."""
        watched = Watched().start()
        browser = await self.opened(watched)
        await browser.screen(360, 300)
        await browser.value(
            "scrollTo(0, 200); window.kept = document.querySelector('main')"
        )
        watched.down = REFUSED
        watched.advance(40)
        await self.until(browser, "document.title.startsWith('Not working')")
        kept = await browser.value("kept === document.querySelector('main')")
        self.assertIs(True, kept)
        self.assertEqual(200, await browser.value("scrollY"))
        working, self.site.resource = self.site.resource, Resource()
        await self.until(browser, "!lost.hidden")
        self.site.resource = working
        watched.down = None
        watched.advance(40)
        await self.until(browser, "!document.title.startsWith('Not working')")
        self.assertIs(True, await browser.value("lost.hidden"))

    async def test_hidden(self) -> None:
        """A hidden page sends no requests; visible again, it updates at once."""
        watched = Watched().start()
        browser = await self.opened(watched)
        other = await browser.call("Target.createTarget", url="about:blank")
        await browser.call("Target.activateTarget", targetId=other["targetId"])
        await self.until(browser, "document.hidden")
        await deferLater(reactor, 1)  # requests of just before arrive, too
        asked = len(self.site.asked)
        await deferLater(reactor, 7)
        self.assertEqual(asked, len(self.site.asked))
        watched.down = REFUSED
        watched.advance(40)
        await browser.call("Target.activateTarget", targetId=browser.target)
        await self.until(browser, "document.title.startsWith('Not working')")
        self.assertGreater(len(self.site.asked), asked)

    async def test_pictures(self) -> None:
        """The documentation's pictures can be taken: the page, and what needs attention
        when that is little, much, nothing, or unknown.
        """
        folder = Path(os.environ.get("STATUS_IMAGES") or self.mktemp())
        folder.mkdir(parents=True, exist_ok=True)
        default = [c.name for c in COLLECTORS if c.default]
        whole = Watched(collectors=default, peers=220, pprof=True)
        quiet = Watched(peers=14)
        quiet.bodies = {**QUIET}
        few = Watched(collectors=default, peers=220)
        many = Watched(collectors=default, peers=4000)
        many.clock.advance(GATEWAYS_UPDATE.start(many.now() + WEEK) + 300 - many.now())
        working = "Reading NetBird: yes"
        attention = "section.attention"
        browser = await self.opened(whole.start(5.2 * 3600 + 4))
        few.start(700)
        many.start(60)
        quiet.start(60)
        for name, watched, height, selector, words in (
            ("status-light", whole, 950, "", working),
            ("status-dark", whole, 950, "", working),
            ("status-failing", whole, 1420, "", "the NetBird API rejects the token"),
            ("attention-few", few, 1900, attention, "Network depot"),
            ("attention-many", many, 1900, attention, "Network hq cannot be reached"),
            ("attention-nothing", quiet, 1900, attention, NO_PROBLEM),
            ("attention-unknown", few, 1900, attention, "their metrics are missing"),
        ):
            if name.endswith(("failing", "unknown")):
                watched.down = REFUSED
                watched.advance(720)
            self.site.resource = watched.tree
            await browser.screen(1080, height)
            await browser.scheme("dark" if name.endswith("dark") else "light")
            await browser.visit(self.url)
            self.assertIn(words, str(await browser.value("document.body.innerText")))
            picture = await browser.picture(selector)
            self.assertTrue(picture.startswith(b"\x89PNG\r\n"), name)
            (folder / f"{name}.png").write_bytes(picture)
