"""Profiles of this process over the loopback interface, in the real `go tool pprof`."""

import os
import re
import shutil
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import cast

import treq
from twisted.internet import reactor
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import SkipTest, TestCase
from twisted.web.resource import Resource
from twisted.web.server import Site

from api_exporter.web.pprof import ProfileService
from tests.integration.ports import listening

BLOCK = 20_000_000
"""Bytes of a block whose size is known."""

LIMIT = 60
"""Seconds after which the threads of a test end in any case."""


def spin(end: threading.Event) -> None:
    """Busy until the end."""
    until = time.monotonic() + LIMIT
    while not end.is_set() and time.monotonic() < until:
        sum(range(1000))


def doze(end: threading.Event) -> None:
    """Blocked until the end."""
    end.wait(LIMIT)


def hold() -> bytearray:
    return bytearray(BLOCK)


HOLDING = f"integration/test_pprof.py:{hold.__code__.co_firstlineno + 1}"


def share(top: str, name: str) -> float:
    """The cumulative percentage of a function in a table; 0 where it is not in it."""
    found = re.search(rf"([0-9.]+)% +\S*{re.escape(name)}$", top, re.MULTILINE)
    return float(found[1]) if found else 0.0


class GoToolPprofTests(TestCase):
    timeout = 4 * LIMIT

    def setUp(self) -> None:
        go = shutil.which("go")
        if go is None:
            raise SkipTest("missing program: go")
        self.go = go
        self.reactor = cast(ReactorBase, reactor)
        profiles = ProfileService(self.reactor, self.reactor.getThreadPool(), time.time)
        self.addCleanup(profiles.stopService)
        tree, debug = Resource(), Resource()
        tree.putChild(b"debug", debug)
        debug.putChild(b"pprof", profiles.pages)
        port = listening(self, Site(tree))
        self.url = f"http://127.0.0.1:{port}/debug/pprof"
        # Go builds the tool at its first use, which may take longer than LIMIT.
        subprocess.run([go, "tool", "-n", "pprof"], check=True, capture_output=True)

    def run_thread(self, target: Callable[[threading.Event], None]) -> None:
        """Run a function in a thread of its name until the test ends."""
        end = threading.Event()
        thread = threading.Thread(target=target, args=(end,), name=target.__name__)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(end.set)  # before the join: cleanups run last first

    async def tool(self, *arguments: str, status: int = 0) -> str:
        """All that `go tool pprof` prints."""
        env = {**os.environ, "PPROF_TMPDIR": self.mktemp()}
        command = ["tool", "pprof", *arguments]
        out, err, code = await getProcessOutputAndValue(
            self.go, command, env=env, reactor=self.reactor
        )
        printed: str = (out + err).decode()
        self.assertEqual(status, code, printed)
        return printed

    async def fetch(self, path: str) -> str:
        """The name of a file with a profile."""
        response = await treq.get(self.url + path, persistent=False)
        body = await treq.content(response)
        self.assertEqual(200, response.code, body)
        file = Path(self.mktemp())
        file.write_bytes(body)
        return str(file)

    async def test_cpu(self) -> None:
        """A busy function has nearly all of the CPU, a sleeping one nothing."""
        self.run_thread(spin)
        self.run_thread(doze)
        top = await self.tool(
            "-top", "-nodefraction=0", f"{self.url}/profile?seconds=2"
        )
        self.assertIn("Type: cpu", top)
        self.assertGreater(share(top, ".spin"), 80)
        self.assertLess(share(top, ".doze"), 2)

    async def test_heap(self) -> None:
        """A block of known size is found at the line that holds it, and no longer."""
        profile = Deferred.fromCoroutine(self.fetch("/heap?seconds=1"))
        while not tracemalloc.is_tracing():
            await deferLater(self.reactor, 0.01)
        held = hold()
        file = await profile
        self.assertFalse(tracemalloc.is_tracing())
        top = await self.tool("-top", "-unit=B", "-nodefraction=0", file)
        self.assertIn("Type: inuse_space", top)
        found = re.search(rf"^ *(\d+)B .* {re.escape(HOLDING)}$", top, re.MULTILINE)
        assert found is not None, top
        self.assertLess(abs(int(found[1]) - len(held)), BLOCK / 10)
        raw = await self.tool("-raw", file)
        self.assertIn("inuse_objects/count inuse_space/bytes[dflt]", raw)
        self.assertNotIn("alloc_", raw)
