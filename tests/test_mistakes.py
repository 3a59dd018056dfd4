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
from api_exporter.upstream.failures import headers_error, response_error, translate
from tests.documents import ROOT

URL, TOKEN = "https://api.example", "nbp_secret"
HTML = "<html>Sign in</html>"

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

SETTINGS: dict[str, tuple[str, str]] = {
    "no address": ("UPSTREAM_API_URL=", "UPSTREAM_API_URL is not set: it must be an"),
    "no token": ("UPSTREAM_API_TOKEN=", "UPSTREAM_API_TOKEN is not set: it must be"),
    "a path": (f"UPSTREAM_API_URL={URL}/api", "leave out the path: /api/… is added"),
    "no scheme": ("UPSTREAM_API_URL=api.example", "the scheme must be http or https"),
    "a query": (f"UPSTREAM_API_URL={URL}?a", "leave out the query"),
    "a wrong port": (f"UPSTREAM_API_URL={URL}:https", "must be a number up to 65535"),
    "a space": (f"UPSTREAM_API_URL=a {URL}", "a space or control character"),
    "token with space": ("UPSTREAM_API_TOKEN=Bearer nbp_x", "contains a space"),
    "two tokens": ("UPSTREAM_API_TOKEN_FILE=/x", "are both set: set only one"),
    "no unit": ("HTTP_TIMEOUT=30", "add a unit: 30s?"),
    "a word": ("HTTP_TIMEOUT=fast", "it must be a duration such as 30s"),
    "a collector": ("COLLECTORS=peer", "'peer' is not one of peers, groups"),
    "a resource": ("REFRESH_INTERVALS=peer=1m", "'peer' is not one of peers"),
    "no interval": ("REFRESH_INTERVALS=peers", "peers needs one duration"),
    "too quick": ("REFRESH_INTERVALS=peers=10ms", "peers: at least 1s"),
    "peers off": ("REFRESH_INTERVALS=peers=off", "always needs this resource"),
    "only a port": ("LISTEN_ADDRESS=8080", "it must be host:port, such as :8080"),
    "a large port": ("LISTEN_ADDRESS=:80800", "it must be host:port"),
    "a URL": ("LISTEN_ADDRESS=http://x:1", "it must be host:port"),
    "metrics path": ("METRICS_PATH=metrics", "it must be a path such as /metrics"),
    "a taken path": ("METRICS_PATH=/health", "another page uses this path"),
    "log level": ("LOG_LEVEL=verbose", "one of debug, info, warning, error"),
    "personal data": ("EXPOSE_PERSONAL_DATA=yes", "'yes' is not one of email, name"),
    "detail": ("PEER_DETAIL=servers", "it must be all, none, or groups:"),
    "a metric": ("METRICS_DENY=netbird_peers", "matches no metric of an enabled"),
    "no folder": ("ACCOUNTS_DIR=/nowhere", "No such file or directory"),
    "shard": ("SHARD=0/3", "SHARD is set, but ACCOUNTS_DIR is not: set both"),
    "other exporter": ("NETBIRD_API_TOKEN=x", "use UPSTREAM_API_TOKEN or"),
    "a removed one": ("METRICS_ALLOW=x", "not a setting any more: use COLLECTORS"),
    "proxy": ("UPSTREAM_PROXY=socks5://x:1", "it must be the address of an http"),
    "key alone": ("UPSTREAM_CLIENT_KEY_FILE=/nowhere", "No such file or directory"),
    "events": ("EVENTS_FILE=-", "EVENTS_CURSOR_FILE is not set: where EVENTS_FILE"),
}
"""A line that is added to an address and a token."""

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
    (401, b"", ""): "Check the expiry of the service user's tokens",
    (403, b"", ""): "a service user with the role auditor",
    (400, PLAIN, ""): "write https:// in UPSTREAM_API_URL",
    (426, b"", ""): "write https:// in UPSTREAM_API_URL",
    (400, b"", ""): "write https:// in UPSTREAM_API_URL if the server speaks TLS",
    (302, b"", ""): "set UPSTREAM_API_URL to the final address",
    (404, b"404 page not found", "text/plain"): "a proxy in front of the API forwards",
    (407, b"", ""): "Put user and password into the address of the proxy",
    (429, b"", ""): "create a token for the exporter alone",
    (200, HTML.encode(), "text/html"): "UPSTREAM_API_URL is the address of the API",
}
"""Responses of a wrong server, or to a wrong token."""

NETWORK: dict[Exception, str] = {
    SSL.Error([("", "", "wrong version number")]): "does not speak TLS on this port",
    SSL.Error([("", "", "certificate verify failed")]): "set UPSTREAM_CA_FILE",
    error.DNSLookupError("x"): "Check its spelling, then ask the resolver",
    error.ConnectionRefusedError(): "UPSTREAM_API_URL has the right port",
    error.TimeoutError(): "no firewall drops packets",
}


class MistakesTests(SynchronousTestCase):
    def test_each(self) -> None:
        """Each message has the words that help."""
        found = list(self.messages())
        self.assertGreater(len(found), 60)
        for mistake, expected, message in found:
            self.assertIn(expected, message, mistake)
            self.assertNotIn("nbp_secret", message, mistake)

    def test_documented(self) -> None:
        """The documented mistakes are twenty, and their messages are real."""
        text = (ROOT / "docs/operations.md").read_text()
        rows = text.partition("## Frequent mistakes")[2].partition("\n## ")[0]
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
        for mistake, (line, expected) in SETTINGS.items():
            name, _, value = line.partition("=")
            environ = {**required, name: value}
            if name == "NETBIRD_API_TOKEN":
                del environ["UPSTREAM_API_TOKEN"]
            yield mistake, expected, self.refusal(partial(read_settings, environ))
        for argument, expected in ARGUMENTS.items():
            yield argument, expected, self.ended(argument)
        for (status, body, media), expected in RESPONSES.items():
            headers = Headers({"Content-Type": [media]})
            failed = response_error(status, headers, body, now=0, secrets=())
            if status == 200:
                refused = headers_error(headers)
                assert refused is not None
                failed = refused
            yield status, expected, f"{failed}. {advice(failed)}"
        for cause, expected in NETWORK.items():
            raised = self.assertRaises(UpstreamError, translate, Failure(cause))
            assert isinstance(raised, UpstreamError)
            yield cause, expected, f"{raised}. {advice(raised)}"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            [problem] = bind_problems(parse_addresses(address))
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
