"""Mistakes of newcomers: each message names the cause and the way out."""

import io
import re
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from OpenSSL import SSL
from twisted.internet import error
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.cli import main
from api_exporter.ports import UpstreamError
from api_exporter.serving.listener import bind_problems
from api_exporter.settings import configuration_file
from api_exporter.settings.addresses import parse_addresses
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError
from api_exporter.upstream.advice import advice
from api_exporter.upstream.certificate_problems import chain_problem
from api_exporter.upstream.failures import headers_error, raise_upstream_error
from api_exporter.upstream.refusal import response_error
from tests.authority import Authority
from tests.scripted import refusal
from tests.settings.test_table import REFUSED
from tools.documents import ROOT

URL, TOKEN = "https://api.example", "nbp_secret"
HTML = "<html>Sign in</html>"
UNKNOWN_ISSUER = 20
"""OpenSSL's verify error."""

FILE = {
    b"\xef\xbb\xbfA=1": "save it as UTF-8 without BOM",
    "A=1".encode("utf-16"): "save it as UTF-8",
    b"A=1\r\nB=2\r\n": "save it with Unix line ends",
    b"A = 1": "f:1: A: no spaces around =",
    b"A= 1": "f:1: A: no spaces around =",
    b"COLLECTORS": "f:1: COLLECTORS: NAME=value is missing its =",
    b"nbp_secret": "f:1: NAME= is missing",
    b"A='1": "f:1: A: nothing may follow the closing '",
    b"A=a b": "f:1: A: put the value into quotes",
    b"A=1 # one": "f:1: A: put the value into quotes; a comment has its own line",
    b"A: 1": "f:1: NAME= is missing",
}
"""Contents of a settings file."""

SETTINGS: dict[str, str] = {
    "UPSTREAM_API_URL=": "UPSTREAM_API_URL is not set: it must be an",
    "UPSTREAM_API_TOKEN=": "UPSTREAM_API_TOKEN is not set: it must be",
    f"UPSTREAM_API_URL={URL}/api": "leave out the path: /api/… is added",
    f"UPSTREAM_API_URL={URL}:https": "must be a number up to 65535",
    "UPSTREAM_API_TOKEN=Bearer nbp_x": "leave out the prefix before the token",
    "UPSTREAM_API_TOKEN_FILE=/x": "are both set: set only one",
    "METRICS_DENY=netbird_peers": "matches no metric of an enabled",
    "ACCOUNTS_DIR=/nowhere": "No such file or directory",
    "SHARD=0/3": "SHARD is set, but ACCOUNTS_DIR is not: set both",
    "NETBIRD_API_TOKEN=x": "use UPSTREAM_API_TOKEN or",
    "METRICS_ALLOW=x": "not a setting any more: use COLLECTORS",
    "UPSTREAM_PROXY=socks5://x:1": "it must be the address of an http",
    "UPSTREAM_CLIENT_KEY_FILE=/nowhere": "No such file or directory",
    "EVENTS_FILE=-": "EVENTS_CURSOR_FILE is not set: where EVENTS_FILE",
    **{
        f"{name}={text}": words
        for name, refused in REFUSED.items()
        for words, (text, *_) in refused.items()
    },
}
"""Lines that are added to an address and a token."""

ARGUMENTS = {
    "foo": "'foo' is not an option: options begin with --",
    "--web.listen-address=:9": "use the setting LISTEN_ADDRESS, in the environment or",
    "--web.telemetry-path=/m": "use the setting METRICS_PATH",
    "--config.file=x": "use --config",
    "--log.level=debug": "use the setting LOG_LEVEL",
    "--upstream-api-url=x": "use the setting UPSTREAM_API_URL",
    "--strict": "--strict requires --check",
    "--json": "--json requires --check",
    "--account=a": "--account requires --check or --once",
}

PLAIN = b"Client sent an HTTP request to an HTTPS server.\n"
RESPONSES = {
    (401, refusal(401), ""): "Check the expiry of the service user's tokens",
    (403, refusal(403), ""): "a service user with the role auditor",
    (403, HTML.encode(), "text/html"): "Let /api/ through to the management API",
    (400, PLAIN, ""): "write https:// in UPSTREAM_API_URL",
    (426, b"", ""): "write https:// in UPSTREAM_API_URL",
    (302, b"", ""): "Set UPSTREAM_API_URL to the final address",
    (404, b"404 page not found", "text/plain"): "a proxy in front of the API forwards",
    (407, b"", ""): "Put user and password into the address of the proxy",
    (429, refusal(429), ""): "create a token for the exporter alone",
    (200, HTML.encode(), "text/html"): "UPSTREAM_API_URL is the address of the API",
}
"""Responses of a wrong server, or to a wrong token."""

ISSUER = chain_problem(Authority("one").issue("x").certificate, UNKNOWN_ISSUER)
assert ISSUER is not None

NETWORK: dict[Exception, str] = {
    SSL.Error([("", "", "wrong version number")]): "does not speak TLS on this port",
    SSL.Error([("", "", "certificate verify failed")]): "set UPSTREAM_CA_FILE",
    ISSUER: "set UPSTREAM_CA_FILE",
    error.DNSLookupError("x"): "Check its spelling, then ask the resolver",
    error.ConnectionRefusedError(): "UPSTREAM_API_URL has the right port",
    error.TimeoutError(): "no firewall drops packets",
}


class MistakesTests(SynchronousTestCase):
    def test_each(self) -> None:
        """Each message has the words that help."""
        found = list(self.messages())
        self.assertGreater(len(found), 80)
        for mistake, expected, message in found:
            self.assertIn(expected, message, mistake)
            self.assertNotIn("nbp_secret", message, mistake)

    def test_documented(self) -> None:
        """The documented mistakes are twenty, and their messages are real."""
        text = (ROOT / "docs/troubleshooting.md").read_text()
        rows = text.partition("| **Settings** |")[2].partition("| **Start** |")[0]
        documented = re.findall(r"^\| (`.*?`) \| ", rows, re.MULTILINE)
        self.assertEqual(20, len(documented))
        found = [message for _, _, message in self.messages()]
        for words in re.findall(r"`([^`]+)`", " ".join(documented)):
            self.assertTrue(any(words in message for message in found), words)

    def messages(self) -> Iterator[tuple[object, str, str]]:
        """Yield each mistake, the expected words, and the whole message."""
        for content, expected in FILE.items():
            file = Path(self.mktemp()).parent / "f"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            load = partial(configuration_file.lines, file)
            yield content, expected, self.refusal(load)
        required = {"UPSTREAM_API_URL": URL, "UPSTREAM_API_TOKEN": TOKEN}
        for line, expected in SETTINGS.items():
            name, _, value = line.partition("=")
            environ = {**required, name: value}
            if name == "NETBIRD_API_TOKEN":
                del environ["UPSTREAM_API_TOKEN"]
            yield line, expected, self.refusal(partial(read_settings, environ))
        for argument, expected in ARGUMENTS.items():
            yield argument, expected, self.ended(argument)
        for (status, body, media), expected in RESPONSES.items():
            headers = Headers({"Content-Type": [media]})
            failed = response_error(status, headers, body, url=URL, now=0, secrets=())
            if status == 200:
                refused = headers_error(headers)
                assert refused is not None
                failed = refused
            yield status, expected, f"{failed}. {advice(failed)}"
        for cause, expected in NETWORK.items():
            raised = self.assertRaises(
                UpstreamError, raise_upstream_error, Failure(cause)
            )
            assert isinstance(raised, UpstreamError)
            yield cause, expected, f"{raised}. {advice(raised)}"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            # A socket of systemd cannot be tried.
            [problem] = bind_problems(
                parse_addresses(f"systemd:domain=INET:index=0,{address}")
            )
            yield "a port in use", "choose another port: LISTEN_ADDRESS=:PORT", problem

    def refusal(self, load: Callable[[], object]) -> str:
        with self.assertRaises(ConfigurationError) as raised:
            load()
        return str(raised.exception)

    def ended(self, argument: str) -> str:
        printed = io.StringIO()
        self.patch(sys, "stderr", printed)
        self.patch(sys, "argv", ["api-exporter", argument])
        self.assertRaises(SystemExit, main)
        return printed.getvalue()
