"""Profiles of this process over the loopback interface, in the real `go tool pprof`."""

import os
import re
import subprocess
import threading
import time
from functools import partial

from twisted.internet import reactor
from twisted.internet.base import ReactorBase
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.threads import deferToThreadPool
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import TestCase
from twisted.web.server import Site

from api_exporter.web.pprof import Profiles
from api_exporter.web.tree import Tree
from tests.integration.programs import program

LIMIT = 60
"""Seconds after which the threads of a test end in any case."""


def spin(end: threading.Event) -> None:
    """Be busy until the end."""
    until = time.monotonic() + LIMIT
    while not end.is_set() and time.monotonic() < until:
        sum(range(1000))


def doze(end: threading.Event) -> None:
    """Sleep until the end."""
    end.wait(LIMIT)


def share(top: str, name: str) -> float:
    """Return the cumulative percentage of a function in a table; 0 without one."""
    found = re.search(rf"([0-9.]+)% +\S*{re.escape(name)}$", top, re.MULTILINE)
    return float(found[1]) if found else 0.0


class GoToolPprofTests(TestCase):
    timeout = 4 * LIMIT

    async def test_cpu(self) -> None:
        """A busy function has nearly all of the CPU, a sleeping one nothing."""
        go = program("go")
        # Go builds the tool at its first use, which may take longer than LIMIT.
        subprocess.run([go, "tool", "-n", "pprof"], check=True, capture_output=True)
        assert isinstance(reactor, ReactorBase)
        profiles = Profiles(
            reactor,
            time.time,
            partial(deferToThreadPool, reactor, reactor.getThreadPool()),
        )
        self.addCleanup(profiles.stopService)
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = await endpoint.listen(Site(Tree(profiles.pages, "/metrics")))
        self.addCleanup(port.stopListening)
        end = threading.Event()
        for target in (spin, doze):
            thread = threading.Thread(target=target, args=(end,), name=target.__name__)
            thread.start()
            self.addCleanup(thread.join)
        self.addCleanup(end.set)  # before the joins: cleanups run last first
        url = f"http://127.0.0.1:{port.getHost().port}/debug/pprof/profile?seconds=2"
        env = {**os.environ, "PPROF_TMPDIR": self.mktemp()}
        command = ["tool", "pprof", "-top", "-nodefraction=0", url]
        out, err, status = await getProcessOutputAndValue(
            go, command, env=env, reactor=reactor
        )
        top = (out + err).decode()
        self.assertEqual(0, status, top)
        self.assertIn("Type: cpu", top)
        self.assertGreater(share(top, ".spin"), 80)
        self.assertLess(share(top, ".doze"), 2)
