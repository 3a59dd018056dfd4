"""Several accounts in one process: real programs, real sockets."""

import re
import threading
from functools import partial

from tests.integration.exporter import Answer, ExporterTestCase, Upstream, says
from tests.integration.programs import Running, environment, get, start, until

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
