"""The canary: a token goes through every path that can fail and is found nowhere."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from tests.integration.exporter import (
    Answer,
    ExporterTestCase,
    Upstream,
    key_and_certificate,
    says,
)
from tests.integration.programs import free_port, get
from tests.integration.proxies import folder, squid

CANARY = "nbp_0canary0canary0canary0canary0c4PYgFe"
"""Well-formed: its checksum is right."""

PROXY_USER = "me"
"""The user of a proxy, whose password is the canary."""

PAGES = (
    "/",
    "/health",
    "/ready",
    "/metrics",
    "/findings",
    "/status.json",
    "/sd?port=9100",
    "/lookup.json",
    f"/lookup?name={CANARY[:4]}",
    "/nothing",
    f"/{CANARY[:4]}",
    "/debug/pprof/",
    "/debug/pprof/goroutine?seconds=0",
)


def forms(token: str) -> Iterator[str]:
    """All texts that tell the token, or whether a guess at it is right."""
    digest = hashlib.sha256(token.encode()).digest()
    yield token
    yield token[4:-6]
    yield base64.b64encode(token.encode()).decode().rstrip("=")
    yield base64.b64encode(f"{PROXY_USER}:{token}".encode()).decode().rstrip("=")
    yield digest.hex()
    yield base64.b64encode(digest).decode().rstrip("=")
    yield base64.b64encode(digest).decode().rstrip("=").lower()


def gone_token(authorization: str) -> Answer:
    """As NetBird refuses one that it does not know any more: with its hash."""
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest()
    name = base64.b64encode(digest).decode().lower()
    return refusal(404, f"invalid token: pat: {name} not found")


def refusal(status: int, message: str) -> Answer:
    body = json.dumps({"message": message, "code": status})
    return says(status, body.encode())


def echo(status: int) -> Callable[[str], Answer]:
    """Return an upstream that repeats the token."""
    return lambda authorization: refusal(status, f"who is {authorization}?")


def plain_echo(authorization: str) -> Answer:
    return says(200, authorization.encode())


def echo_as_record(authorization: str) -> Answer:
    body = json.dumps([{"id": [authorization]}, authorization])
    return says(200, body.encode())


class CanaryTestCase(ExporterTestCase):
    """Secrets that no text may contain."""

    hidden: Sequence[str] = tuple(forms(CANARY))

    def assert_clean(self, text: str | bytes, what: str) -> None:
        """Nothing of a secret is in a text."""
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        for form in self.hidden:
            self.assertFalse(form in text, f"{form} in {what}: {text[-3000:]}")


class CanaryTests(CanaryTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.formats = cycle(["text", "json"])

    def assert_run_clean(self, environ: dict[str, str], sign: str) -> str:
        """A whole life at LOG_LEVEL=debug: its pages, its log, its command line."""
        environ = {**environ, "LOG_LEVEL": "debug", "LOG_FORMAT": next(self.formats)}
        environ["LOOKUP"] = "true"
        command = [*self.exporter, "--enable-pprof"]
        running = self.saying(sign, environ, command)
        for path in PAGES:
            status, _, body = get(self.url(path))
            self.assertNotEqual(0, status, path)
            self.assert_clean(body, path)
        shown = Path(f"/proc/{running.process.pid}/cmdline").read_bytes()
        self.assert_clean(shown, "the process list")
        self.assertEqual(0, running.stop()[0], running.said())
        self.assert_clean(running.said(), "the log")
        return running.said()

    def assert_reports_clean(self, environ: dict[str, str]) -> None:
        """Both reports of a run that ends by itself."""
        for flag in ("--check", "--once"):
            ended = self.ended([*self.exporter, flag], environ)
            self.assertNotIn("Traceback", ended.stderr)
            self.assertIn(ended.returncode, (0, 1))
            self.assert_clean(ended.stdout + ended.stderr, flag)

    def canary(self, url: str, **settings: str) -> dict[str, str]:
        """The environment of an exporter that gives the canary to an upstream."""
        return self.reading(
            url, **{"UPSTREAM_API_TOKEN": CANARY, "COLLECTORS": "peers", **settings}
        )

    def test_refusals(self) -> None:
        """No answer of the upstream makes the exporter repeat the token."""
        upstream = Upstream(self)
        for fault, reason in (
            (gone_token, "auth"),
            (echo(403), "forbidden"),
            (echo(500), "http_5xx"),
            (plain_echo, "decode"),
            (echo_as_record, "decode"),
            (echo_as_record, "decode"),
        ):
            upstream.faults["*"] = fault
            environ = self.canary(upstream.url)
            said = self.assert_run_clean(environ, "cannot refresh peers")
            self.assertRegex(said, f'reason(=|": "){reason}')

    def test_reports(self) -> None:
        """`--check` and `--once` do not show it either, refused or not."""
        upstream = Upstream(self)
        upstream.faults["*"] = gone_token
        self.assert_reports_clean(self.canary(upstream.url))
        upstream.faults.clear()
        upstream.tokens = {CANARY}
        self.assert_reports_clean(self.canary(upstream.url, COLLECTORS="default"))

    def test_no_connection(self) -> None:
        """Neither a refused connection nor one that cannot be trusted tells it."""
        both, _ = key_and_certificate(self.directory)
        untrusted = Upstream(self, CANARY, pem=both)
        for url, reason in (
            (f"http://127.0.0.1:{free_port()}", "connect"),
            (untrusted.url, "tls"),
            ("http://no-such-host.invalid", "dns"),
        ):
            environ = self.canary(url)
            said = self.assert_run_clean(environ, "cannot refresh peers")
            self.assertRegex(said, f'reason(=|": "){reason}')
        self.assert_reports_clean(self.canary(untrusted.url))
        self.assertEqual([], untrusted.asked)

    def test_proxy(self) -> None:
        """The password of a proxy is not shown, with any error of the proxy."""
        upstream = Upstream(self)
        login = f"{PROXY_USER}:{CANARY}"
        asks = squid(self, folder(self) / "squid", login=True)
        given = {"UPSTREAM_PROXY": f"http://{login}@{asks.address}"}
        environ = self.canary(upstream.url, UPSTREAM_API_TOKEN="other", **given)
        said = self.assert_run_clean(environ, "cannot refresh peers")
        self.assertRegex(said, 'reason(=|": ")proxy_auth')
        self.assertEqual([], upstream.asked)
        given = {"UPSTREAM_PROXY": f"http://{login}@127.0.0.1:{free_port()}"}
        environ = self.canary(
            "https://localhost:1", UPSTREAM_API_TOKEN="other", **given
        )
        self.assert_reports_clean(environ)
        given = {"HTTPS_PROXY": f"http://{PROXY_USER}:/{CANARY}@proxy.example"}
        environ = self.canary("https://x.example", UPSTREAM_API_TOKEN="other", **given)
        ended = self.ended([*self.exporter, "--check"], environ)
        self.assertIn("HTTPS_PROXY: its value is not allowed", ended.stderr)
        self.assert_clean(ended.stdout + ended.stderr, "--check")
