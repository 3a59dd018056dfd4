"""`--check` and `--once` from the command line to the exit status, with the demo."""

import io
import json
import os
import sys
import warnings
from functools import partial
from pathlib import Path
from socket import AddressFamily
from typing import Any, TextIO

import msgspec
from twisted.internet._resolver import GAIResolver
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import (
    IConnector,
    IHostnameResolver,
    IListeningPort,
    IProtocolFactory,
)
from twisted.internet.task import react
from twisted.logger import LogBeginner, LogPublisher
from twisted.test.iosim import FakeTransport, IOPump, connect
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Request

from api_exporter import cli
from api_exporter.checking import report
from api_exporter.demo import server
from api_exporter.demo.api import DemoApi
from api_exporter.report.document import Document
from tests.memory_reactor import MemoryReactorClock

CLIENT = IPv4Address("TCP", "127.0.0.1", 40000)


class Linked(MemoryReactorClock):
    """A reactor that connects each client to the only server, in memory.

    Attributes:
        servers: the numbers of servers that run, after each start and stop.
        resolver: the installed resolver of names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.servers: list[int] = []
        self.resolver: IHostnameResolver | None = None

    def run(self) -> None:
        """Transfer all bytes until the program stops the reactor."""
        self.running = True
        pumps: list[IOPump] = []
        for call, arguments, options in self.whenRunningHooks:
            call(*arguments, **options)
        for _ in range(10_000):
            pumps += [self._connect(factory) for _, _, factory, *_ in self.tcpClients]
            self.tcpClients.clear()
            for pump in pumps:
                pump.flush()
            if not self.running:
                return
            self.advance(0.001)
        raise AssertionError("the program does not end")

    def installNameResolver(  # noqa: N802 - the name is Twisted's
        self,
        nameResolver: IHostnameResolver,  # noqa: N803 - the same
    ) -> IHostnameResolver:
        """Store the resolver, but use no thread: there are only addresses."""
        self.resolver = nameResolver
        return self.nameResolver

    def adoptStreamPort(  # noqa: N802 - the same
        self,
        fileDescriptor: int,  # noqa: N803 - the same
        addressFamily: AddressFamily,  # noqa: N803 - the same
        factory: IProtocolFactory,
    ) -> IListeningPort:
        port: IListeningPort = super().adoptStreamPort(
            fileDescriptor, addressFamily, factory
        )
        self.servers.append(1)
        port.stopListening = lambda: self.servers.append(0)  # type: ignore[method-assign]
        return port

    def connectTCP(  # noqa: N802 - the same
        self, *arguments: Any, **options: Any
    ) -> IConnector:
        """Refuse the connection if there is no server."""
        if not self.adoptedPorts:
            raise ConnectError
        connector: IConnector = super().connectTCP(*arguments, **options)
        return connector

    def _connect(self, clients: IProtocolFactory) -> IOPump:
        [(_, _, servers)] = self.adoptedPorts
        server, client = servers.buildProtocol(CLIENT), clients.buildProtocol(CLIENT)
        pump: IOPump = connect(
            server, FakeTransport(server, True), client, FakeTransport(client, False)
        )
        return pump


class RunTests(SynchronousTestCase):
    def ended(self, out: TextIO, *arguments: str, **environ: str) -> object:
        """Return the exit status of the command."""
        self.reactor = Linked()
        self.patch(cli, "react", partial(react, _reactor=self.reactor))
        self.patch(warnings, "showwarning", warnings.showwarning)
        logs = LogBeginner(LogPublisher(), io.StringIO(), sys, warnings)
        self.patch(report, "globalLogBeginner", logs)
        self.patch(os, "environ", {"DEMO_PEERS": "15", **environ})
        self.patch(sys, "stdout", out)
        demo = [] if "UPSTREAM_API_URL" in environ else ["--demo"]
        self.patch(sys, "argv", ["api-exporter", *demo, *arguments])
        raised = self.assertRaises(SystemExit, cli.main)
        self.assertIs(out, sys.stdout)
        return raised.code

    def printed(self, *arguments: str, **environ: str) -> tuple[object, str]:
        """Return the exit status, and the output."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        status = self.ended(out, *arguments, **environ)
        out.flush()
        return status, out.buffer.getvalue().decode()

    def test_check(self) -> None:
        """A check reads each resource once, and prints the findings."""
        status, text = self.printed("--check")
        self.assertEqual(0, status)
        for pattern in (
            r"^access: no authentication: .*\n(?:listening: .*\n)?"
            r"NetBird API: http://127.0.0.1:\d+\nconnection: direct\nreachable: yes\n",
            r"\napi/peers  +fresh  +15 +\d+\n",
            r"\napi/users/current  +unsupported +\d+\n",
            r"\nneeds attention:\ncritical: ",
        ):
            self.assertRegex(text, pattern)
        self.assertNotIn("\naccount: ", text)
        self.assertEqual([1, 0], self.reactor.servers)
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.assertIsInstance(self.reactor.resolver, GAIResolver)

    def test_address(self) -> None:
        """A check refuses an address that a start refuses."""
        err = io.StringIO()
        self.patch(sys, "stderr", err)
        own = {"UPSTREAM_API_URL": "http://127.0.0.1:1", "UPSTREAM_API_TOKEN": "a"}
        status, _ = self.printed("--check", **own, LISTEN_ADDRESS="tcp:http")
        self.assertEqual(os.EX_CONFIG, status)
        self.assertIn("LISTEN_ADDRESS: cannot listen on tcp:http: ", err.getvalue())

    def test_accounts(self) -> None:
        """All accounts are read, or the named one. The peers decide about success."""
        unread = "the peers cannot be read"
        states = f"ok\ncustomer-002: {unread}\ncustomer-003: {unread}\n"
        summary = f"\n\ncustomer-001: {states}"
        for arguments, expected, shown, end in (
            ([], 1, 3, summary),
            (["--strict"], 3, 3, summary),
            (["--account=customer-001"], 0, 1, "/runbooks.html\n"),
            (["--account=customer-001", "--strict"], 2, 1, "/runbooks.html\n"),
            (["--account=customer-002"], 1, 1, ""),
        ):
            status, text = self.printed("--check", *arguments, DEMO_ACCOUNTS="3")
            self.assertEqual(expected, status, arguments)
            self.assertEqual(shown, text.count("\naccount: customer-"), arguments)
            self.assertTrue(text.endswith(end), text)

    def test_json(self) -> None:
        """The output is one document, even without a connection or a valid token."""
        broken = {"UPSTREAM_API_URL": "http://127.0.0.1:1", "UPSTREAM_API_TOKEN": "s3c"}
        read, refused = (2, True, "fresh", None), (3, True, "failing", "auth")
        several, first = {"DEMO_ACCOUNTS": "3"}, "--account=customer-001"
        for arguments, environ, expected, states in (
            ([], {}, 0, [read]),
            (["--strict", first], several, 2, [read]),
            ([], several, 1, [read, refused, refused]),
            (["--strict"], broken, 3, [(3, False, "failing", "connect")]),
        ):
            status, text = self.printed("--check", "--json", *arguments, **environ)
            document = json.loads(text)
            self.assertEqual(expected, status, arguments)
            self.assertEqual(2, document["schema"])
            self.assertIn("no authentication", document["access"][0])
            self.assertNotIn("s3c", text)
            found = []
            status_json = msgspec.convert(document["status"], Document)
            for account, entry in zip(
                document["accounts"], status_json.accounts, strict=True
            ):
                peers = entry.resources[0]
                known = account["strict_exit_status"], entry.reachable
                found.append((*known, peers.state, peers.reason))
                self.assertGreater(entry.requests_per_minute, 2)
                self.assertEqual("critical", entry.findings[0].severity)
            self.assertEqual(states, found)

    def test_once(self) -> None:
        """The metrics of one account are printed, as a scrape returns them."""
        for arguments, expected, start in (
            (["--account=customer-001"], 0, "# HELP netbird_api_peers "),
            (["--account=customer-002"], 1, ""),
            ([], 78, ""),
        ):
            err = io.StringIO()
            self.patch(sys, "stderr", err)
            status, text = self.printed("--once", *arguments, DEMO_ACCOUNTS="3")
            self.assertEqual(expected, status, arguments)
            self.assertTrue(text.startswith(start), text[:100])
            self.assertEqual(expected == 0, "日本" in text)
            self.assertEqual(expected > 0, bool(err.getvalue()))

    def test_logs(self) -> None:
        """A report reads the resources of logs, and writes no file."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        names = ("EVENTS_FILE", "ACCESS_LOG_FILE")
        files = {name: str(folder / name) for name in names}
        usual = server.demo_environment
        self.patch(server, "demo_environment", lambda x: {**usual(x), **files})
        for flag in ("--check", "--once"):
            status, text = self.printed(flag)
            self.assertEqual(0, status, text)
        self.assertEqual([], [*folder.iterdir()])

    def test_line_ends(self) -> None:
        """A name with another line end than LF begins no line of the output."""
        usual = DemoApi.render

        def render(api: DemoApi, request: Request) -> int | bytes:
            if request.uri != b"/api/groups":
                return usual(api, request)
            request.setHeader("Content-Type", "application/json")
            return '[{"id":"a","name":"b\u2028c"}]'.encode()

        self.patch(DemoApi, "render", render)
        _, text = self.printed("--once")
        self.assertIn('{group_id="a",group="b\u2028c"} ', text)
        _, text = self.printed("--check", "--json", IMPORTANT_GROUPS="a")
        [account] = json.loads(text)["status"]["accounts"]
        self.assertEqual(["b\u2028c"], [one["name"] for one in account["groups"]])

    def test_reader_gone(self) -> None:
        """A closed pipe ends the command with the status of SIGPIPE."""
        for command in (["--check"], ["--check", "--json"], ["--once"]):
            reader, writer = os.pipe()
            os.close(reader)
            with open(writer, "w") as out:
                self.assertEqual(141, self.ended(out, *command))

    def test_full_disk(self) -> None:
        """A full disk ends the command with a line."""
        for command in (["--check"], ["--check", "--json"], ["--once"]):
            stderr = io.StringIO()
            self.patch(sys, "stderr", stderr)
            with open("/dev/full", "w") as out:
                self.assertEqual(1, self.ended(out, *command))
            line = "api-exporter: standard output cannot be written: No space left"
            self.assertIn(line, stderr.getvalue())
            self.assertEqual(1, stderr.getvalue().count("\n"))
