"""Several accounts in one process: real programs, real sockets."""

import json
import re
import threading
from functools import partial

from tests.integration.exporter import Answer, ExporterTestCase, Upstream, says
from tests.integration.programs import (
    ROOT,
    Running,
    becomes,
    environment,
    get,
    start,
    until,
)
from tests.integration.promql import SECOND, Prometheus

ACME = "nbp_0canary0acme0acme0acme0acme0can00001"
BETA = "nbp_0canary0beta0beta0beta0beta0can00002"
SUCCESS = re.compile(
    r'last_success_timestamp_seconds\{resource="peers"\} (\S+)', re.ASCII
)

HUGE = b'[{"id":"' + b"a" * 200_000_000 + b'"}]'


class AccountsTests(ExporterTestCase):
    timeout = 150

    def setUp(self) -> None:
        super().setUp()
        self.acme, self.beta = Upstream(self, ACME), Upstream(self, BETA)
        self.folder = self.directory / "accounts"
        self.folder.mkdir()
        self.account("acme", f"UPSTREAM_API_URL={self.acme.url}")
        (self.directory / "token").write_text(ACME)
        self.account("acme", "UPSTREAM_API_TOKEN_FILE=../token")
        self.account("beta", f"UPSTREAM_API_URL={self.beta.url}")
        self.account("beta", f"UPSTREAM_API_TOKEN={BETA}")

    def account(self, name: str, line: str) -> None:
        with (self.folder / f"{name}.conf").open("a") as file:
            file.write(f"{line}\n")

    def environ(self, **settings: str) -> dict[str, str]:
        return environment(
            ACCOUNTS_DIR=str(self.folder),
            LISTEN_ADDRESS=f"127.0.0.1:{self.port}",
            REFRESH_INTERVALS="peers=1s,groups=2s",
            HTTP_TIMEOUT="3s",
            API_RETRY_ATTEMPTS="1",
            **settings,
        )

    def reading_both(self, **settings: str) -> Running:
        """Start an exporter; wait for the peers of acme."""
        running = start(self, self.exporter, self.directory, self.environ(**settings))
        until(lambda: self.up("acme") is not None, "the peers of acme")
        return running

    def up(self, name: str) -> bool | None:
        found = re.search(r"^netbird_api_up (\d)", self.metrics(name), re.MULTILINE)
        return None if found is None else found[1] == "1"

    def metrics(self, name: str) -> str:
        return self.page(f"/metrics?account={name}")

    def success(self, name: str) -> float:
        found = SUCCESS.search(self.metrics(name))
        return 0.0 if found is None else float(found[1])

    def refreshed(self, name: str, since: float) -> bool:
        return self.success(name) > since

    def test_trouble_is_its_own(self) -> None:
        """A failing upstream does not affect the other account."""
        running = self.reading_both()
        until(lambda: self.up("beta") is True, "the peers of beta")
        over = threading.Event()
        self.addCleanup(over.set)

        def hang(_authorization: str) -> Answer:
            over.wait(20)
            return says(200, b"[]")

        for what, fault in (
            ("invalid token", lambda _: says(401, b'{"message":"token invalid"}')),
            ("200 MB", lambda _: says(200, HUGE)),
            ("hung", hang),
            ("rate limited", lambda _: says(429, b"{}")),
        ):
            self.beta.faults = {"/api/peers": fault}
            until(lambda: self.up("beta") is False, f"{what}: beta is down")
            later = partial(self.refreshed, "acme", self.success("acme") + 1)
            until(later, f"{what}: acme goes on")
            self.assertIs(True, self.up("acme"), what)
            self.assertEqual(200, get(self.url("/ready"))[0])
            if what == "rate limited":
                break  # the pause is long
            self.beta.faults = {}
            until(lambda: self.up("beta") is True, f"{what}: beta is back")
        for line in running.said().splitlines():
            self.assertNotRegex(line, "(cannot refresh|again).*account=acme")
        self.assert_stops(running)

    def test_canary(self) -> None:
        """Neither token is on a page, in the log in a report, nor the other URL."""

        def echo(authorization: str) -> Answer:
            return says(401, json.dumps({"message": authorization}).encode())

        self.acme.faults = {"/api/users": echo}
        self.beta.faults = {"*": echo}
        running = self.reading_both(LOG_LEVEL="debug")
        until(lambda: self.up("beta") is False, "beta is refused")
        until(lambda: 'up{resource="users"} 0' in self.metrics("acme"), "the users")
        paths = ["/", "/metrics", "/health", "/ready", "/status.json", "/sd/accounts"]
        pages = {path: self.page(path) for path in paths}
        for path in paths[:-1]:
            for name in ("acme", "beta"):
                pages[f"{name} {path}"] = self.page(f"{path}?account={name}")
        for name in ("acme", "beta"):
            pages[f"{name} /sd"] = self.page(f"/sd?port=1&account={name}")
        running.stop()
        pages["log"] = running.said()
        for option in ("--check", "--once"):
            options = ("--account", "beta") if option == "--once" else ()
            ended = self.ended([*self.exporter, option, *options], self.environ())
            pages[option] = ended.stdout + ended.stderr
        for what, page in pages.items():
            for token in (ACME, BETA):
                self.assertNotIn(token, page, what)
            if what.startswith("acme"):
                self.assertNotIn(self.beta.url, page, what)
            if what.startswith("beta"):
                self.assertNotIn(self.acme.url, page, what)
        last = [x for x in pages["--check"].splitlines() if x[:5] in {"acme:", "beta:"}]
        self.assertEqual(["acme: ok", "beta: the peers cannot be read"], last)

    def test_log(self) -> None:
        """Every line about an account says which."""
        self.account("acme", "PEER_DETAIL=groups:nowhere")
        self.account("acme", "UPSTREAM_RATE_LIMIT=70/100")
        self.beta.faults = {"*": lambda _: says(500, b"oops")}
        running = self.reading_both()
        for words in ("names 'nowhere'", "are lengthened", "cannot refresh", "reached"):
            until(lambda words=words: words in running.said(), words)  # type: ignore[misc]
            for line in running.said().splitlines():
                if words in line:
                    self.assertRegex(line, " account=(acme|beta)( |$)")

    def test_mistakes(self) -> None:
        """An error in the folder ends the start, and --once needs a name."""
        self.account("beta", "LISTEN_ADDRESS=:1")
        ended = self.ended(self.exporter, self.environ())
        self.assertEqual(78, ended.returncode)
        self.assertIn("beta.conf:3: LISTEN_ADDRESS does not belong", ended.stderr)
        self.assertNotIn("canary", ended.stderr)
        (self.folder / "beta.conf").unlink()
        self.account("gamma", f"UPSTREAM_API_TOKEN={BETA}")
        self.account("gamma", f"UPSTREAM_API_URL={self.beta.url}")
        for options, words in (
            (["--once"], "--once needs --account, which must be one of acme, gamma"),
            (["--check", "--account=x"], "--account: 'x' is not allowed: it must be"),
        ):
            ended = self.ended([*self.exporter, *options], self.environ())
            self.assertEqual(78, ended.returncode)
            self.assertIn(words, ended.stderr)


class PrometheusTests(ExporterTestCase):
    def test_fifty(self) -> None:
        """The documented job finds fifty accounts, and which of them are up."""
        self.serving(environ=self.settings(DEMO_ACCOUNTS="50"))
        documented = (ROOT / "docs" / "accounts.md").read_text()
        (job,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", documented, re.DOTALL)
        self.assertEqual(2, job.count("exporter.example:8080"))
        until(lambda: get(self.url("/sd/accounts"))[0] == 200, "the list of accounts")
        job = job.replace("exporter.example:8080", f"127.0.0.1:{self.port}")
        prometheus = Prometheus(self, self.directory, f"{SECOND}{job}")
        for number, expression in (
            (48.0, 'count(netbird_api_up{job="netbird"} == 1)'),
            (2.0, 'count(netbird_api_up{job="netbird"} == 0)'),
            (50.0, 'count(up{job="netbird"} == 1)'),
            (50.0, 'count by (instance) (up{job="netbird"})'),
            (50.0, "api_exporter_accounts"),
            (48.0, "sum(api_exporter_account_up)"),
            (48.0, 'count(count by (account) (netbird_api_peers{job="netbird"}))'),
        ):
            becomes([number], partial(prometheus.values, expression))
        self.assertEqual(
            [], prometheus.values('process_start_time_seconds{job="netbird"}')
        )
