"""The whole program with a fake reactor."""

import io
import os
import sys
from pathlib import Path

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IHostnameResolver
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.account import Account
from api_exporter.demo import server as demo
from api_exporter.refresh.compute import compute_at_once
from api_exporter.service import Configuration, Program, assemble, configure
from api_exporter.settings import environment
from api_exporter.settings.options import Options
from api_exporter.web.pprof import ProfileService
from tests.logbook import logbook

URL = "http://10.0.0.1"
NOW = 1_800_000_000.0


class Reactor(MemoryReactorClock):
    """A reactor whose threads never start, and which resolves no names in them."""

    def getThreadPool(self) -> ThreadPool:  # noqa: N802 - the name is Twisted's
        return ThreadPool(0, 1)

    def installNameResolver(  # noqa: N802 - the same
        self,
        nameResolver: IHostnameResolver,  # noqa: ARG002, N803
    ) -> IHostnameResolver:
        return self.nameResolver


class ProgramTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.reactor = Reactor()
        self.book = logbook(self)

    def program(self, *, pprof: bool = False, **settings: str) -> Program:
        environ = {"UPSTREAM_API_URL": URL, "LISTEN_ADDRESS": "127.0.0.1:8080"}
        checked = environment.read_settings({**environ, **settings})
        program = assemble(
            Configuration(checked, None, None),
            self.reactor,  # type: ignore[arg-type]
            pprof=pprof,
            dropped=lambda: 0,
            log_threads=self.reactor.getThreadPool(),
            compute=compute_at_once,
            now=lambda: NOW,
            jitter=lambda: 0.5,
        )
        for service in program.services:
            service.privilegedStartService()
            service.startService()
        self.addCleanup(self.stop, program)
        return program

    def stop(self, program: Program) -> None:
        for service in reversed(program.services):
            service.stopService()
        self.reactor.advance(1)

    def get(self, path: str) -> str:
        _, factory, *_ = self.reactor.tcpServers[0]
        transport = StringTransport()
        protocol = factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 1))
        assert protocol is not None
        protocol.makeConnection(transport)
        protocol.dataReceived(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        self.reactor.advance(0)
        return bytes(transport.value()).decode()

    def folder(self, *names: str) -> str:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        for name in names:
            (folder / f"{name}.conf").write_text("UPSTREAM_API_TOKEN=secret\n")
        return str(folder)


class OneAccountTests(ProgramTestCase):
    def test_pages(self) -> None:
        """The pages are those of the account, and its name is not needed."""
        self.program(UPSTREAM_API_TOKEN="secret")
        self.assertIn("api_exporter_build_info", self.get("/metrics"))
        self.assertIn('"url": "http://10.0.0.1"', self.get("/health"))
        self.assertIn(" 503 ", self.get("/sd?port=1"))
        for path in ("/sd/accounts", "/debug/pprof/"):
            self.assertIn(" 404 ", self.get(path))

    def test_profiles(self) -> None:
        """With --enable-pprof profiles are a service and a page, and are logged."""
        program = self.program(pprof=True, UPSTREAM_API_TOKEN="secret")
        self.assertIsInstance(program.services[-1], ProfileService)
        self.assertIn("Profiles of api-exporter", self.get("/debug/pprof/"))
        self.assertIn('"debug/pprof/"', self.get("/"))
        lines = [line for line in self.book.lines() if "/debug/pprof/" in line]
        self.assertEqual(1, len(lines))

    def test_reload(self) -> None:
        """A reload reads the files of tokens."""
        token = Path(self.mktemp()).absolute()
        token.write_text("secret")
        program = self.program(UPSTREAM_API_TOKEN_FILE=str(token))
        token.unlink()
        program.reload()
        self.assertIn("the token file cannot be read", self.book.lines()[-1])


class SeveralAccountsTests(ProgramTestCase):
    def test_pages(self) -> None:
        """An account has its own pages by its name; without one they are of all."""
        self.program(ACCOUNTS_DIR=self.folder("acme", "beta"))
        self.assertIn("api_exporter_accounts 2.0", self.get("/metrics"))
        self.assertNotIn("build_info", self.get("/metrics?account=acme"))
        self.assertIn(" 404 ", self.get("/metrics?account=gamma"))
        self.assertIn('"account": "beta"', self.get("/sd/accounts"))
        self.assertIn("info serving 2 accounts", self.book.lines())

    def test_in_order(self) -> None:
        """Accounts start one after the other."""
        program = self.program(ACCOUNTS_DIR=self.folder("acme", "beta"))
        begun = [len(self.reactor.tcpClients)]
        self.reactor.advance(0.05)
        begun.append(len(self.reactor.tcpClients))
        self.assertEqual([2, 4], begun)
        accounts = [one for one in program.services if isinstance(one, Account)]
        self.assertEqual(["acme", "beta"], [a.network.account for a in accounts])

    def test_parts(self) -> None:
        """An account has the features that its settings enable; others do not."""
        folder = self.folder("acme", "beta")
        events = Path(self.mktemp()).absolute()
        with (Path(folder) / "acme.conf").open("a") as file:
            file.write(f"EVENTS_FILE={events}\n")
        self.program(ACCOUNTS_DIR=folder)
        name = "audit_events_written_total"
        found = [name in self.get(f"/metrics?account={a}") for a in ("acme", "beta")]
        self.assertEqual([True, False], found)


class ConfigureTests(SynchronousTestCase):
    def test_access_first(self) -> None:
        """A wrong web configuration is reported before a network is simulated."""

        def build(*_: object, **__: object) -> None:
            raise AssertionError

        self.patch(demo, "server", build)
        self.patch(os, "environ", {"WEB_CONFIG_FILE": "/nowhere"})
        err = io.StringIO()
        self.patch(sys, "stderr", err)
        options = Options()
        options["demo"] = True
        with self.assertRaises(SystemExit):
            configure(options, Reactor())  # type: ignore[arg-type]
        self.assertIn("/nowhere", err.getvalue())
