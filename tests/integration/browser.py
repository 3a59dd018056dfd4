"""Headless Chromium, by its DevTools protocol."""

import base64
import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred, fail
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from tests.integration.programs import PATIENCE

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)

Json = dict[str, object]


class Browser(ProcessProtocol):
    """A browser: it answers JSON with a zero byte after it."""

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

    async def start(self, executable: str, profile: Path) -> None:
        """Start the program with a new profile, and open a tab."""
        profile.mkdir(parents=True)
        self._process = reactor.spawnProcess(
            self,
            executable,
            [executable, *FLAGS.split(), f"--user-data-dir={profile.resolve()}"],
            env={**os.environ, "HOME": str(profile.resolve())},
            childFDs={0: "w", 1: "r", 2: "r", 3: "w", 4: "r"},
        )
        created = await self.call("Target.createTarget", url="about:blank")
        self.target = created["targetId"]
        attached = await self.call(
            "Target.attachToTarget", targetId=self.target, flatten=True
        )
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Log", "Runtime"):
            await self.call(f"{domain}.enable")

    async def end(self) -> None:
        if not self.ended.called:
            self.call("Browser.close").addErrback(lambda _: None)
            killing = reactor.callLater(5, self._process.signalProcess, "KILL")
            await self.ended
            if killing.active():
                killing.cancel()

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
