"""The whole program with a fake reactor."""

import gc
import io
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import cast

import twisted.internet.reactor  # noqa: TID251 - to replace it
from twisted.application.service import Application, MultiService, Service
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IHostnameResolver
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.testing import StringTransport
from twisted.logger import ILogObserver
from twisted.python.threadpool import ThreadPool
from twisted.scripts._twistd_unix import ServerOptions
from twisted.trial.unittest import SynchronousTestCase

from api_exporter import cli
from api_exporter.account import SharedState
from api_exporter.accounts import AccountSet
from api_exporter.daemon.logs import LineObserver
from api_exporter.daemon.systemd import Notifier
from api_exporter.demo import server as demo
from api_exporter.refresh.compute import compute_at_once
from api_exporter.service import (
    Configuration,
    Program,
    assemble,
    configure,
    make_accounts,
)
from api_exporter.serving.listener import Listener
from api_exporter.settings import environment
from api_exporter.settings.options import Options
from api_exporter.telemetry.process import LagMeter
from api_exporter.version import this_build
from api_exporter.web.pprof import Profiles
from tests.daemon.test_process import replaced
from tests.daemon.test_systemd import Systemd
from tests.logbook import logbook
from tests.memory_reactor import MemoryReactorClock, Resolver

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
        self.reactor.advance(1000.0)
        self.book = logbook(self)
        directory = tempfile.TemporaryDirectory()  # its name is short
        self.addCleanup(directory.cleanup)
        self.socket = f"{directory.name}/notify"
        self.systemd = Systemd(self, self.socket)

    def program(
        self, *, pprof: bool = False, simulation: Service | None = None, **settings: str
    ) -> Program:
        environ = {"UPSTREAM_API_URL": URL, "LISTEN_ADDRESS": "127.0.0.1:8080"}
        checked = environment.read_settings({**environ, **settings})
        program = assemble(
            Configuration(checked, simulation, None),
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
        self.reactor.advance(0)
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
        """The pages are those of the account, and the log says where they are."""
        self.program(UPSTREAM_API_TOKEN="secret")
        self.assertIn("api_exporter_build_info", self.get("/metrics"))
        at, path = "http://127.0.0.1:8080", f"unix:{self.socket}.http"
        line = f"info {this_build()} is at"
        expected = f"{line} {at}/ and its metrics at {at}/metrics"
        self.assertEqual(expected, self.book.lines()[0])
        self.assertNotIn("simulated", self.get("/"))
        self.reactor.advance(2.0)
        health = self.get("/health")
        self.assertIn('"url": "http://10.0.0.1"', health)
        self.assertIn('"uptime_seconds": 2.0', health)
        self.assertIn(" 503 ", self.get("/sd?port=1"))
        for missing in ("/sd/accounts", "/debug/pprof/"):
            self.assertIn(" 404 ", self.get(missing))
        self.book.events.clear()
        self.program(UPSTREAM_API_TOKEN="secret", LISTEN_ADDRESS=path)
        self.assertIn(f"{line} {path}", self.book.lines())

    def test_exposed(self) -> None:
        """A warning says that others can read the metrics, but not those of a demo."""
        for simulation, warnings in ((None, 1), (Service(), 0)):
            self.book.events.clear()
            self.program(
                simulation=simulation,
                UPSTREAM_API_TOKEN="secret",
                LISTEN_ADDRESS=":8080",
            )
            found = [line for line in self.book.lines() if "readable by anyone" in line]
            self.assertEqual(warnings, len(found))

    def test_profiles(self) -> None:
        """With --enable-pprof profiles are a service and a page, and are logged."""
        program = self.program(pprof=True, UPSTREAM_API_TOKEN="secret")
        self.assertIsInstance(program.services[-1], Profiles)
        self.assertIn("Profiles of api-exporter", self.get("/debug/pprof/"))
        self.assertIn('"debug/pprof/"', self.get("/"))
        lines = [line for line in self.book.lines() if "/debug/pprof/" in line]
        self.assertEqual(1, len(lines))
        self.assertEqual("", self.get("/debug/pprof/profile?seconds=1"))

    def test_status(self) -> None:
        """The supervisor gets the state, and each change of `up`."""
        self.patch(os, "environ", {"NOTIFY_SOCKET": self.socket})
        self.program(UPSTREAM_API_TOKEN="secret")
        self.assertIn("STATUS=peers starting", self.systemd.heard())
        self.reactor.advance(60.0)
        self.assertIn("STATUS=peers failing: ", "".join(self.systemd.heard()))

    def test_reload(self) -> None:
        """A reload reads the files of tokens, and the listener's certificates."""
        token = Path(self.mktemp()).absolute()
        token.write_text("secret")
        program = self.program(UPSTREAM_API_TOKEN_FILE=str(token))
        token.unlink()
        program.reload()
        self.assertIn("the token file cannot be read", self.book.lines()[-1])
        [listener] = (one for one in program.services if isinstance(one, Listener))
        self.assertIn(listener.reload, program.reloads)


class SeveralAccountsTests(ProgramTestCase):
    def test_pages(self) -> None:
        """Accounts start one after the other, and have pages by their names."""
        self.patch(os, "environ", {"NOTIFY_SOCKET": self.socket})
        self.program(ACCOUNTS_DIR=self.folder("acme", "beta"))
        begun = [len(self.reactor.tcpClients)]
        self.reactor.advance(0.05)
        self.assertEqual([2, 4], [*begun, len(self.reactor.tcpClients)])
        self.assertIn("STATUS=0 of 2 accounts up", self.systemd.heard())
        self.assertIn("api_exporter_accounts 2.0", self.get("/metrics"))
        self.assertNotIn("build_info", self.get("/metrics?account=acme"))
        self.assertIn(" 404 ", self.get("/metrics?account=gamma"))
        self.assertIn('"account": "beta"', self.get("/sd/accounts"))
        self.assertIn("info serving 2 accounts", self.book.lines())

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

    def test_check(self) -> None:
        """Without threads for logs, as in a check, an account has no log."""
        environ = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": "secret"}
        settings = environment.read_settings(environ | {"EVENTS_FILE": self.mktemp()})
        shared = SharedState(settings.accounts.values())
        reactor = cast(PosixReactorBase, self.reactor)
        [account] = make_accounts(settings, reactor, shared).accounts.values()
        registry = account.network.telemetry.registry
        name = "api_exporter_audit_events_written_total"
        self.assertIsNone(registry.get_sample_value(name))


class PosixReactor(Reactor, PosixReactorBase):  # type: ignore[misc]
    """A reactor of the type that a process needs."""

    nameResolver = Resolver()  # noqa: N815 - the name is Twisted's


class MakeServiceTests(SynchronousTestCase):
    def setUp(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        self.addCleanup(gc.unfreeze)
        self.patch(sys, "excepthook", sys.excepthook)
        self.patch(twisted.internet, "reactor", PosixReactor())

    def made(self, *twistd: str, **settings: str) -> MultiService:
        """Return the services as twistd makes them."""
        environ = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": "secret"}
        self.patch(os, "environ", {**environ, **settings})
        options = Options()
        options.parent = ServerOptions()
        options.parent.parseOptions(["--nodaemon", *twistd])
        options.parseOptions([])
        return cli.makeService(options)

    def test_process(self) -> None:
        """The process yields often, and handles SIGHUP and its own exceptions."""
        gc.unfreeze()
        before, report = signal.getsignal(signal.SIGHUP), sys.excepthook
        service = self.made()
        self.assertTrue(gc.isenabled())
        self.assertGreater(gc.get_freeze_count(), 0)
        self.assertEqual(0.001, sys.getswitchinterval())
        self.assertNotEqual(before, signal.getsignal(signal.SIGHUP))
        self.assertIsNot(report, sys.excepthook)
        kinds = [Listener, AccountSet, LagMeter, Notifier]
        self.assertEqual(kinds, [type(one) for one in service])

    def test_syslog(self) -> None:
        """Twistd logs to syslog itself; then no line is dropped."""
        for twistd, ours in (((), True), (("--syslog",), False)):
            application = Application("test")
            self.made(*twistd).setServiceParent(application)
            found = application.getComponent(ILogObserver)
            self.assertEqual(ours, isinstance(found, LineObserver))

    def refused(self, status: int = os.EX_CONFIG, **settings: str) -> str:
        """Return why the program does not start."""
        err = io.StringIO()
        self.patch(sys, "stderr", err)
        raised = self.assertRaises(SystemExit, self.made, **settings)
        self.assertEqual(status, raised.code)
        return err.getvalue()

    def test_refused(self) -> None:
        """Impossible addresses and lost output are errors, each with a line."""
        found = self.refused(UPSTREAM_API_URL="ftp://x", HTTP_TIMEOUT="5")
        self.assertEqual(2, len(found.splitlines()), found)
        file = {"UPSTREAM_API_TOKEN": "", "UPSTREAM_API_TOKEN_FILE": "/nowhere"}
        self.assertIn("(No such file or directory)", self.refused(1, **file))
        start = "api-exporter: LISTEN_ADDRESS: cannot listen on tcp:http: "
        self.assertIn(start, self.refused(LISTEN_ADDRESS="tcp:http"))
        events = {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": self.mktemp()}
        with replaced(1):
            self.made(**events)
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), 1)
            self.assertIn("EVENTS_FILE: standard output is", self.refused(**events))


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
