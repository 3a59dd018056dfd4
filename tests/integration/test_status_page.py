"""The status page in a real browser: what it shows, where, and how it stays fresh."""

from pathlib import Path

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import Site

from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import COLLECTORS
from tests.integration.browser import Browser
from tests.integration.programs import PATIENCE, program
from tests.web.watched import Watched

REFUSED = UpstreamError("auth", "401: the NetBird API rejects the token")


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
        """Return a browser that shows the page; both end with the test."""
        self.site = CountingSite(watched)
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = await endpoint.listen(self.site)
        self.addCleanup(port.stopListening)
        self.url = f"http://127.0.0.1:{port.getHost().port}/"
        browser = Browser()
        await browser.start(program("chromium"), Path(self.mktemp()))
        self.addCleanup(browser.end)
        await browser.visit(self.url)
        return browser

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
        """The tab key reaches each link; all text can be read on each screen."""
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
        for scheme in ("light", "dark"):
            for width in (360, 1280):
                await browser.scheme(scheme)
                await browser.screen(width, 800, mobile=width < 700)
                for path in ("", "findings"):
                    await browser.visit(self.url + path)
                    shown = (scheme, width, path)
                    self.assertEqual([], await browser.value(CONTRAST), shown)
                    self.assertEqual(width, await browser.value("innerWidth"), shown)

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

    async def test_focus(self) -> None:
        """An update keeps the focus and the open folds, also when a fold appears."""
        browser = await self.needy()
        for stop in (".contents a", "#requests summary", "#peers a"):
            await browser.value("infos.remove(); requests.open = true")
            await browser.value(f"document.querySelector('{stop}').focus()")
            await browser.value("window.old = document.activeElement")
            await self.until(browser, "!old.isConnected")
            focused = f"document.activeElement === document.querySelector('{stop}')"
            self.assertIs(True, await browser.value(focused), stop)
            opened = (
                "[...document.querySelectorAll('[open]')].map(one => one.id).join()"
            )
            self.assertEqual("requests", await browser.value(opened))

    async def test_hidden(self) -> None:
        """A hidden page sends no requests; visible again, it updates at once."""
        browser = await self.needy()
        await browser.value("document.querySelector('.findings a').focus()")
        name = await browser.value("document.activeElement.ariaLabel")
        await browser.value("document.querySelector('details').open = true")
        other = await browser.call("Target.createTarget", url="about:blank")
        await browser.call("Target.activateTarget", targetId=other["targetId"])
        await self.until(browser, "document.hidden")
        await deferLater(reactor, 1)  # requests of just before arrive, too
        asked = len(self.site.asked)
        await deferLater(reactor, 7)
        self.assertEqual(asked, len(self.site.asked))
        await browser.value("window.old = document.activeElement")
        await browser.call("Target.activateTarget", targetId=browser.target)
        await self.until(browser, "!old.isConnected")
        self.assertGreater(len(self.site.asked), asked)
        is_open = await browser.value("document.querySelector('details').open")
        self.assertIs(True, is_open)
        self.assertEqual(name, await browser.value("document.activeElement.ariaLabel"))
