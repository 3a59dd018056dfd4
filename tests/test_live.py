"""SIGHUP applies settings while the program runs."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from api_exporter import service
from api_exporter.attention.finding import Finding
from api_exporter.live import applicable
from api_exporter.netbird.resources import PROBE_PATH
from api_exporter.refresh.network import AccountNetwork
from api_exporter.service import Configuration
from api_exporter.serving.site import BoundedSite
from api_exporter.settings.definitions import LIVE_SETTINGS, SETTINGS, Settings
from api_exporter.settings.environment import read_settings
from api_exporter.upstream.tls_policy import UpstreamCertificate
from simulation.company.network import SimulatedNetwork
from simulation.exporter import RunningExporter
from simulation.link import Response, complete
from simulation.machine import Machine
from tests.daemon.test_systemd import Systemd, directory
from tests.logbook import logbook
from tests.settings.test_loader_unused import examples
from tests.upstream.test_fetcher import NeverResolved

NOW = 1_800_000_000.0
URL = "http://10.0.0.1"
DETAIL, PEERS = "netbird_api_peer_connected{", "netbird_api_peers{"
ALWAYS = "netbird_api_peers_by_os"
EVENTS = "netbird_api_audit_"


class Api:
    """A network behind each token, in memory.

    Attributes:
        networks: by token.
        requests: the token and path of each request.
        silent: if no request gets a response.
        limited: tokens whose requests get 429.
    """

    def __init__(self, *tokens: str) -> None:
        self.networks = {token: SimulatedNetwork(20) for token in tokens}
        self.requests: list[str] = []
        self.silent = False
        self.limited: set[str] = set()

    def connection_state(self) -> str:
        return "open"

    def respond(self, path: str, token: str) -> Response:
        self.requests.append(f"{token} {path}")
        if self.silent:
            return Response([])
        if token in self.limited:
            return complete(429, b'{"message":"rate limit exceeded","code":429}')
        found = self.networks[token].body(f"/{path}", NOW)
        if found is None:
            return complete(404, b"404 page not found\n", "text/plain")
        return complete(200, b"".join(found))


class OtherAccount(SimulatedNetwork):
    """A network with other ids, of a token that may not read setup keys."""

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        found = super().body(path, at)
        if found is None or path == "/api/setup-keys":
            return None
        return (part.replace(b'"d2', b'"e2') for part in found)


class NoProviders(SimulatedNetwork):
    """A network whose Agent Network has no provider."""

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        is_empty = path == "/api/agent-network/providers"
        return iter((b"[]",)) if is_empty else super().body(path, at)


class LiveTestCase(SynchronousTestCase):
    """An exporter on a simulated machine.

    Attributes:
        compute: seconds of a computation in the thread.
        end_seconds: seconds in which the exporter must end.
    """

    compute = 0.01
    end_seconds = 10.0

    def setUp(self) -> None:
        self.book = logbook(self)
        self.api = Api("one", "two", "three")
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.environ = {
            "UPSTREAM_API_URL": URL,
            "UPSTREAM_PROXY": "none",
            "LISTEN_ADDRESS": "127.0.0.1:8080",
            "ACCOUNTS_DIR": str(self.folder),
            "LOOKUP": "true",
        }
        for name in ("one", "two"):
            self.account(name)

    def account(self, name: str, **settings: str) -> None:
        lines = {"UPSTREAM_API_TOKEN": name, **settings}
        text = "".join(f"{key}='{value}'\n" for key, value in lines.items())
        (self.folder / f"{name}.conf").write_text(text)

    def read(self) -> Settings:
        return read_settings(self.environ)

    def start(self, small_bytes: int = 0, seconds: float = 50.0) -> None:
        self.machine = Machine(0.0, self.api, self.work, lambda: self.compute)
        self.exporter = RunningExporter(
            self.machine,
            Configuration(read_settings(self.environ), None, None),
            read=self.read,
            now=lambda: NOW + self.machine.seconds(),
            jitter=lambda: 0.5,
            small_bytes=small_bytes,
        )
        self.exporter.start()
        self.addCleanup(self.end)
        self.advance(seconds)

    def work(self, do: Callable[[], Any]) -> Any:
        """Do the work of a thread."""
        return do()

    def end(self) -> None:
        ended = self.exporter.end()
        self.advance(self.end_seconds)
        self.successResultOf(ended)
        self.assertEqual([], list(self.exporter.left_over()))

    def advance(self, seconds: float) -> None:
        self.machine.run_until(self.machine.seconds() + seconds)

    def reload(self, seconds: float = 20) -> list[str]:
        """Reload, and return the requests of the next seconds."""
        before = len(self.api.requests)
        self.exporter.reload()
        self.advance(seconds)
        return self.api.requests[before:]

    def page(self, name: str) -> str:
        return self.exporter.accounts[name].network.text().decode()

    def found(self, name: str) -> Sequence[Finding]:
        return self.exporter.accounts[name].network.findings.found.findings

    def get(self, path: str) -> str:
        """Return a page."""
        return self.machine.get(path)[1].decode()

    def status(self, path: str) -> int:
        return self.machine.get(path)[0]


def lines(page: str, name: str) -> list[str]:
    return [line for line in page.splitlines() if name in line and line[0] != "#"]


def kept_series(page: str) -> set[str]:
    """Return the series that a reload keeps: all but counters of the exporter."""
    found = {x.rpartition(" ")[0] for x in page.splitlines() if x[:1] in "na"}
    counters = ("_total", "_bucket", "_sum", "_count", "_created")
    return {one for one in found if not one.partition("{")[0].endswith(counters)}


class AccountsTests(LiveTestCase):
    def test_unchanged(self) -> None:
        """Without a change nothing is replaced or requested; two reloads are as one."""
        self.start()
        before = dict(self.exporter.accounts)
        self.exporter.reload()
        self.assertEqual(([], before), (self.reload(1), self.exporter.accounts))
        line = "info reloaded settings: no change"
        self.assertEqual(2, self.book.lines().count(line))

    def test_proxy(self) -> None:
        """Another proxy of the environment is a change, which the log names."""
        del self.environ["UPSTREAM_PROXY"]
        self.start()
        self.environ["HTTP_PROXY"] = "http://proxy.example:3128"
        self.reload()
        line = "info reloaded settings: changed the proxy"
        self.assertIn(line, self.book.lines())

    def test_settings(self) -> None:
        """A changed account starts again, and keeps its records meanwhile."""
        self.start()
        other = self.exporter.accounts["two"]
        key = "netbird_api_setup_key"
        for setting, value, present, absent in (
            ("EXPOSE_PERSONAL_DATA", "city", 'city="', ""),
            ("PEER_DETAIL", "none", PEERS, DETAIL),
            ("METRICS_DENY", "netbird_api_peers", DETAIL, PEERS),
            ("REFRESH_INTERVALS", "peers=3s", 'peers"} 3.0', 'peers"} 30.0'),
            ("METRICS_MAX_AGE", "10m", DETAIL, ""),
            ("UPSTREAM_API_TOKEN", "three", DETAIL, ""),
            ("IMPORTANT_GROUPS", "nothing", DETAIL, ""),
            ("COLLECTORS", "default,events", EVENTS, ""),
            ("COLLECTORS", "peers", DETAIL, key),
            ("COLLECTORS", "peers,setup_keys", key, ""),
        ):
            case = f"{setting}={value}"
            self.account("one", **{setting: value})
            before = len(self.api.requests)
            self.exporter.reload()
            page = ""
            for seconds in (*[0.04] * 20, 12):
                self.advance(seconds)
                page = self.get("/metrics?account=one")
                self.assertTrue("netbird_api_up 1.0" in page and ALWAYS in page, case)
                self.assertEqual(200, self.status("/lookup.csv?account=one"), case)
            self.assertTrue(present in page, case)
            self.assertFalse(absent and absent in page, case)
            requests = [x.split() for x in self.api.requests[before:]]
            found = {path for token, path in requests if token != "two"}
            network = self.exporter.accounts["one"].network
            paths = map(network.pipeline.request_path, network.selection.resources)
            self.assertEqual({PROBE_PATH, *filter(None, paths)}, found, case)
            lines = [x for x in self.book.lines() if "reloaded settings: changed" in x]
            self.assertIn(setting, lines[-1])
        self.assertIs(other, self.exporter.accounts["two"])

    def test_no_gap(self) -> None:
        """No series is missing for a moment, and findings keep their times."""
        self.start()
        certificate = UpstreamCertificate("x", NOW - 1e6, NOW + 1e5)
        self.exporter.accounts["one"].client.server_certificate = certificate
        self.advance(100)
        before = self.get("/metrics?account=one")
        series, since = kept_series(before), lines(before, "_finding_since_")
        self.assertNotEqual(([], set()), (since, series))
        for timeout in ("20s", "21s"):
            self.account("one", HTTP_TIMEOUT=timeout)
            self.exporter.reload()
            for _ in range(150):
                self.advance(0.04)
                page = self.get("/metrics?account=one")
                self.assertEqual(set(), series - kept_series(page))
                self.assertEqual(since, lines(page, "_finding_since_"))

    def test_another_account(self) -> None:
        """The token of another account removes all records, with a warning."""
        self.api.networks["three"] = OtherAccount(20)
        token = self.folder / "token"
        token.write_text("one")
        (self.folder / "one.conf").write_text("UPSTREAM_API_TOKEN_FILE=token\n")
        self.start()

        def replace_file() -> None:
            token.write_text("three")

        def reload() -> None:
            self.account("one")
            self.exporter.reload()

        page = self.get("/metrics?account=one")
        self.assertIn("setup_key_", page)
        for change, old, new in ((replace_file, "d2", "e2"), (reload, "e2", "d2")):
            change()
            since = NOW + self.machine.seconds()
            for _ in range(1000):
                self.advance(0.04)
                page, found = self.page("one"), self.found("one")
                self.assertFalse(f'"{old}' in page and f'"{new}' in page)
                self.assertFalse(f'"{old}' in page and new in str(found))
            for name in ("peer_connected", "group_peers", "network_routing_peers"):
                page = self.page("one")
                self.assertIn(f'"{new}', str(lines(page, f"netbird_api_{name}")))
            self.assertEqual(new == "d2", "setup_key_" in self.page("one"))
            ids = {finding.object_id[:2] for finding in self.found("one")}
            self.assertTrue(new in ids and old not in ids)
            times = [finding.found_at for finding in self.found("one")]
            self.assertGreaterEqual(min(times), since)
        line = "the token is of another account: all records are removed account=one"
        warnings = [one for one in self.book.lines() if one.startswith("warning")]
        self.assertEqual([f"warning {line}"] * 2, warnings)

    def test_other_agents(self) -> None:
        """A list that was empty is not late because of that in another account."""
        self.api.networks["one"] = NoProviders(20)
        self.api.networks["three"] = OtherAccount(20)
        token = self.folder / "token"
        token.write_text("one")
        text = "UPSTREAM_API_TOKEN_FILE=token\nCOLLECTORS=peers,account,agent_network\n"
        (self.folder / "one.conf").write_text(text)
        self.start()
        token.write_text("three")
        self.advance(60)
        self.assertIn("three api/agent-network/providers", self.api.requests)

    def test_come_and_go(self) -> None:
        """An account has pages and connections until its file is removed."""
        self.patch(service, "connection_limit", lambda _, accounts: 100 - accounts)
        self.start()
        for names in (("one", "two", "three"), ("three",), ("one", "three")):
            for path in self.folder.iterdir():
                path.unlink()
            for name in names:
                self.account(name)
            self.reload()
            for name in ("one", "two", "three"):
                page = self.get(f"/metrics?account={name}")
                self.assertEqual(name in names, "netbird_api_up 1.0" in page)
                status = self.status(f"/metrics?account={name}")
                self.assertEqual(200 if name in names else 404, status)
                self.assertEqual(name in names, f'"{name}"' in self.get("/sd/accounts"))
            self.assertIn(f"api_exporter_accounts {len(names)}.0", self.get("/metrics"))
            before = len(self.api.requests)
            self.advance(60)
            asked = {request.split()[0] for request in self.api.requests[before:]}
            self.assertEqual({*names}, asked, "a removed account sends no requests")
            site = self.machine.ports[8080].factory
            assert isinstance(site, BoundedSite)
            self.assertEqual(100 - len(names), site.max_connections)
        lines = [x for x in self.book.lines() if "reloaded settings" in x]
        expected = ["new accounts three", "removed accounts one, two"]
        expected += ["new accounts one"]
        self.assertEqual([f"info reloaded settings: {x}" for x in expected], lines)

    def test_fixed(self) -> None:
        """A change that needs a restart is named, and is no change until then."""
        self.start()
        self.environ["SHARD"] = "0/2"
        self.account("one", PEER_DETAIL="none")
        self.reload()
        line = (
            "warning SHARD: a change needs a restart; until then, all accounts stay as"
            " they are"
        )
        self.assertIn(line, self.book.lines())
        self.assertIn("info reloaded settings: no change", self.book.lines())
        self.environ["SHARD"] = ""
        output = {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": "cursor"}
        self.account("one", PEER_DETAIL="none", **output)
        self.reload(0)
        names = "EVENTS_CURSOR_FILE of one, EVENTS_FILE of one"
        self.assertEqual(
            [
                f"warning {names}: a change needs a restart",
                "info reloaded settings: changed PEER_DETAIL",
            ],
            self.book.lines()[-2:],
        )

    def test_mistake(self) -> None:
        """A mistake leaves all settings as they are, and is one line without values."""
        self.start()
        before = dict(self.exporter.accounts)
        self.account("one", HTTP_TIMEOUT="secret", COLLECTORS="peers")
        self.account("two", PEER_DETAIL="none")
        self.reload()
        self.assertEqual(before, self.exporter.accounts)
        (line,) = [line for line in self.book.lines() if line.startswith("error")]
        self.assertIn("one.conf:2: HTTP_TIMEOUT: 'secret' is not allowed", line)
        self.assertIn("; the previous settings stay in use", line)

    def test_another_network(self) -> None:
        """With another address the account begins without records."""
        self.start()
        self.api.silent = True
        self.account("one", UPSTREAM_API_URL="http://10.0.0.2")
        self.account("two", PEER_DETAIL="none")
        self.reload(1)
        found = [ALWAYS in self.get(f"/metrics?account={n}") for n in ("one", "two")]
        self.assertEqual([False, True], found)
        self.account("one", PEER_DETAIL="none")
        self.account("three")
        self.exporter.reload()  # an end during a reload leaves nothing behind

    def test_under_way(self) -> None:
        """A reload sends cancelled requests again at once; a second one applies."""
        self.start()
        self.api.silent = True
        self.advance(300)
        self.assertIn("netbird_api_up 0.0", self.get("/metrics?account=one"))
        self.account("one", PEER_DETAIL="none")
        self.exporter.reload()
        self.api.silent = False
        self.account("one", EXPOSE_PERSONAL_DATA="city")
        self.reload()
        page = self.get("/metrics?account=one")
        self.assertTrue("netbird_api_up 1.0" in page and 'city="' in page)

    def test_at_once(self) -> None:
        """While a reload runs, others are one, which reads the files after it."""
        token = self.folder / "token"
        token.write_text("one")
        self.start()
        for timeout in range(20, 30):
            settings = f"UPSTREAM_API_TOKEN_FILE=token\nHTTP_TIMEOUT={timeout}s\n"
            (self.folder / "one.conf").write_text(settings)
            self.exporter.reload()
        token.unlink()
        self.advance(5)
        timeouts = [self.exporter.settings["one"].http_timeout]
        token.write_text("one")
        self.reload()
        timeouts.append(self.exporter.settings["one"].http_timeout)
        self.assertEqual([20, 29], timeouts)
        kinds = [x.split()[0] for x in self.book.lines() if "settings" in x]
        self.assertEqual(["info", "error", "info"], kinds)

    def test_look_up(self) -> None:
        """A request that a reload cancels has not failed."""
        self.start()
        self.machine.nameResolver = NeverResolved()
        before = len(self.book.lines())
        for timeout in ("20s", "21s"):
            self.account("one", HTTP_TIMEOUT=timeout)
            self.reload(1)
            self.assertIn("netbird_api_up 1.0", self.get("/metrics?account=one"))
            page = self.get("/?account=one")
            self.assertTrue(" is reachable." in page and "no response" not in page)
        lines = self.book.lines()[before:]
        self.assertEqual([], [one for one in lines if one.startswith("warning")])


class ReplacedTests(LiveTestCase):
    """State that a replaced account takes over, and state that ends with it."""

    def test_max_age(self) -> None:
        """A shorter or longer METRICS_MAX_AGE counts for the records that are kept."""
        self.start()
        self.api.silent = True
        self.account("one", METRICS_MAX_AGE="1m")
        self.account("two", METRICS_MAX_AGE="20m")
        self.reload(70)
        found = [DETAIL in self.page(name) for name in ("one", "two")]
        self.assertEqual([False, True], found)
        self.advance(900)
        self.assertIn(DETAIL, self.page("two"))

    def test_shorter_interval(self) -> None:
        """Three of the new, shorter intervals count for the records that are kept."""
        self.account("one", REFRESH_INTERVALS="groups=100m")
        self.start()
        self.api.silent = True
        self.account("one", REFRESH_INTERVALS="groups=10m")
        self.reload(29 * 60)
        self.assertIn("netbird_api_group_peers", self.page("one"))
        self.advance(2 * 60)
        self.assertNotIn("netbird_api_group_peers{", self.page("one"))

    def test_idle(self) -> None:
        """A list without records has a longer interval, which is not added again."""
        self.api.networks["one"] = NoProviders(20)
        settings = {"COLLECTORS": "peers,agent_network", "METRICS_MAX_AGE": "10m"}
        self.account("one", REFRESH_INTERVALS="agent_providers=10m", **settings)
        self.start()
        self.advance(950)
        self.api.silent = True
        self.account("one", REFRESH_INTERVALS="agent_providers=20m", **settings)
        self.reload(700)
        self.assertIn("netbird_api_agent_providers{", self.page("one"))
        self.advance(200)
        self.assertNotIn("netbird_api_agent_providers{", self.page("one"))

    def test_defect(self) -> None:
        """If a bug hides former records, the account begins without them."""

        async def fail(*_: object) -> None:
            raise ZeroDivisionError

        self.start()
        self.patch(AccountNetwork, "begin_with", fail)
        self.account("one", HTTP_TIMEOUT="20s")
        self.reload(0.05)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertNotIn(ALWAYS, self.page("one"))
        self.advance(5)
        self.assertIn(ALWAYS, self.page("one"))

    def test_too_long(self) -> None:
        """If the page would be too long by now, the account begins without records."""
        self.start()
        self.environ["PAGE_MAX_BYTES"] = "1000"
        self.reload(0.05)
        self.assertNotIn(ALWAYS, self.page("one"))
        lines = [one for one in self.book.lines() if "cannot keep" in one]
        self.assertEqual(2, len(lines), lines)

    def test_history(self) -> None:
        """The history of peers stays if its steps do, and not otherwise."""
        self.start()
        before = self.exporter.accounts["one"].network.history
        self.account("one", PEER_DETAIL="none")
        self.reload()
        self.assertIs(before, self.exporter.accounts["one"].network.history)
        self.account("one", REFRESH_INTERVALS="peers=5m")
        self.reload()
        self.assertEqual(300, self.exporter.accounts["one"].network.history.step)

    def test_thresholds(self) -> None:
        """Other thresholds change the findings. They restart and request nothing."""
        path = self.folder / "thresholds.json"
        path.write_text('{"groups": {"important": ["nothing"]}}')
        self.environ["THRESHOLDS_FILE"] = str(path)
        self.environ["RUNBOOKS_URL"] = "https://wiki.example/own"
        self.start()
        shown = self.get("/?account=one")
        self.assertIn("nothing", shown)
        self.assertIn("https://wiki.example/own#", shown)
        accounts, page = dict(self.exporter.accounts), self.get("/metrics?account=one")
        self.advance(5)
        path.write_text('{"days": {"management_update": 50}}')
        self.assertEqual([], self.reload(1), "requests")
        self.assertEqual(accounts, self.exporter.accounts)
        self.assertNotIn("nothing", self.get("/?account=one"))
        after = self.get("/metrics?account=one")
        self.assertNotEqual(lines(page, "_threshold{"), lines(after, "_threshold{"))
        since = lines(after, "finding_since")
        self.assertTrue({*since} < {*lines(page, "finding_since")}, since)

    def test_quota(self) -> None:
        """An account requests less often while another one has the same token."""
        self.environ["UPSTREAM_RATE_LIMIT"] = "10/10"
        self.start()

        def intervals() -> list[str]:
            lines = self.get("/metrics?account=one").splitlines()
            return [line for line in lines if "_refresh_interval_seconds{" in line]

        before = intervals()
        self.account("three", UPSTREAM_API_TOKEN="one")
        self.reload()
        self.assertNotEqual(before, intervals())
        (self.folder / "three.conf").unlink()
        self.reload()
        self.assertEqual(before, intervals())

    def test_token(self) -> None:
        """A new token begins without the estimated limit of the one before."""
        self.start()
        self.api.limited = {"one"}
        self.advance(120)
        estimate = "\napi_exporter_request_budget_per_minute "
        self.assertIn(estimate, self.get("/metrics?account=one"))
        self.account("one", UPSTREAM_API_TOKEN="three")
        self.assertIn("three api/peers", self.reload())
        self.assertNotIn(estimate, self.get("/metrics?account=one"))

    def test_status(self) -> None:
        """The supervisor gets the state without a removed account."""
        path = f"{directory(self)}/notify"
        systemd = Systemd(self, path)
        self.patch(os, "environ", {"NOTIFY_SOCKET": path})
        self.start()
        (self.folder / "two.conf").unlink()
        self.reload(1)
        self.assertEqual("STATUS=1 of 1 account up", systemd.heard()[-1][:24])


class TableTests(SynchronousTestCase):
    def test_each(self) -> None:
        """A change of each setting applies at once, or is named for a restart."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        (folder / "one.conf").write_text("UPSTREAM_API_TOKEN=one\n")
        environ = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": "one"}
        accounts = {"ACCOUNTS_DIR": str(folder)}
        values = dict(reversed(examples(folder))) | accounts | {"SHARD": "1/3"}
        values |= {"UPSTREAM_API_TOKEN": "two", "METRICS_DENY": "netbird_api_user*"}
        ca = {"UPSTREAM_CLIENT_CERT_FILE": values["UPSTREAM_CLIENT_CERT_FILE"]}
        self.assertEqual({setting.name for setting in SETTINGS}, {*values})
        for name, value in values.items():
            more = accounts if name == "SHARD" else ca if "KEY_FILE" in name else {}
            after = {**environ, **more, name: value}
            if name == "UPSTREAM_API_TOKEN_FILE":
                del after["UPSTREAM_API_TOKEN"]
            running, read = read_settings({**environ, **more}), read_settings(after)
            self.assertNotEqual(running, read, name)
            applied, fixed = applicable(running, read)
            self.assertEqual([] if name in LIVE_SETTINGS else [name], fixed, name)
            self.assertEqual(read if name in LIVE_SETTINGS else running, applied, name)
            _, fixed = applicable(read, running)  # the setting is removed
            self.assertEqual([] if name in LIVE_SETTINGS else [name], fixed, name)

    def test_output(self) -> None:
        """A log begins or ends to use standard output with a restart."""
        environ = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": "one"}
        output = {"EVENTS_FILE": "-", "EVENTS_CURSOR_FILE": "cursor"}
        running, read = read_settings(environ), read_settings({**environ, **output})
        names = ["EVENTS_CURSOR_FILE", "EVENTS_FILE"]
        self.assertEqual((running, names), applicable(running, read))
        self.assertEqual((read, names), applicable(read, running))

    def test_beside_output(self) -> None:
        """All other changes of that reload apply, and each that does not is named."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        environ = {"UPSTREAM_API_URL": URL, "ACCOUNTS_DIR": str(folder)}

        def read(**accounts: str) -> Settings:
            for path in folder.iterdir():
                path.unlink()
            for name, lines in accounts.items():
                (folder / f"{name}.conf").write_text(f"UPSTREAM_API_TOKEN=a\n{lines}")
            return read_settings(environ)

        for log, resource in (("EVENTS", "events"), ("ACCESS_LOG", "access_log")):
            output = f"{log}_FILE=-\n{log}_CURSOR_FILE=c\n"
            other = output.replace("=c", "=d")
            off, detail = f"REFRESH_INTERVALS={resource}=off\n", "PEER_DETAIL=none\n"
            names = [f"{log}_CURSOR_FILE of a", f"{log}_FILE of a"]
            plain = read(a="", b="", c="")
            found = applicable(plain, read(a=output + detail, b=detail, d=other))
            after = read(a=detail, b=detail, d="")
            more = [name.replace(" of a", " of d") for name in names]
            self.assertEqual((after, sorted(names + more)), found)
            running = read(a=output, b="", c="")
            found = applicable(running, read(a=off + detail, b=detail, d=""))
            after = read(a=output + detail, b=detail, d="")
            names.append("REFRESH_INTERVALS of a")
            self.assertEqual((after, sorted(names)), found)
            found = applicable(running, read(b=off))  # nothing moves
            self.assertEqual((read(b=off), []), found)
