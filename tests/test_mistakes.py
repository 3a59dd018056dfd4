"""Mistakes of newcomers: the message of each says what to do."""

import io
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
from api_exporter.upstream.failures import headers_error, raise_upstream_error
from api_exporter.upstream.refusal import response_error
from api_exporter.upstream.tls_policy import chain_problem
from tests.authority import Authority
from tests.scripted import refusal

REQUIRED = {
    "UPSTREAM_API_URL": "https://api.example",
    "UPSTREAM_API_TOKEN": "nbp_secret",
}
UNKNOWN_ISSUER = 20
"""OpenSSL's verify error."""

FILES = (b"\xef\xbb\xbfA=1", b"A=1\r\nB=2\r\n", b"A = 1", b"A=a b")
"""Contents of a settings file."""

SETTINGS = {
    "UPSTREAM_API_URL": ("", "https://api.example/api", "api.example"),
    "UPSTREAM_API_TOKEN": ("Bearer nbp_x",),
    "UPSTREAM_API_TOKEN_FILE": ("/x",),
    "METRICS_DENY": ("netbird_peers",),
    "HTTP_TIMEOUT": ("30",),
    "COLLECTORS": ("peers,pears",),
    "LISTEN_ADDRESS": ("localhost",),
}
"""Values beside an address and a token."""

RESPONSES = (
    (401, refusal(401), ""),
    (400, b"Client sent an HTTP request to an HTTPS server.\n", ""),
)
"""Responses of a wrong server, or to a wrong token."""


SAID = (
    "UPSTREAM_API_URL is not set",
    "leave out the path",
    "the scheme must be http or https",
    "write https:// in UPSTREAM_API_URL",
    "does not speak TLS on this port",
    "the NetBird API rejects the token",
    "leave out the prefix before the token",
    "are both set",
    "a web page instead of JSON",
    "the host name cannot be resolved",
    "is not trusted",
    "save it as UTF-8 without BOM",
    "save it with Unix line ends",
    "no spaces around =",
    "put the value into quotes",
    "add a unit",
    "is not one of peers",
    "it must be host:port",
    "choose another port",
    "use the setting LISTEN_ADDRESS",
    "matches no metric of an enabled collector",
)
"""Words of the messages."""


class MistakesTests(SynchronousTestCase):
    def test_said(self) -> None:
        """The messages have these words, and no secret."""
        found = [*self.messages()]
        self.assertNotIn("nbp_secret", str(found))
        for words in SAID:
            self.assertTrue(any(words in message for message in found), words)

    def messages(self) -> Iterator[str]:
        """Yield the whole message of each mistake."""
        for content in FILES:
            file = Path(self.mktemp())
            file.write_bytes(content)
            yield self.refusal(partial(configuration_file.lines, file))
        for name, values in SETTINGS.items():
            for value in values:
                environ = {**REQUIRED, name: value}
                yield self.refusal(partial(read_settings, environ))
        yield self.ended("--web.listen-address=:9")
        url = REQUIRED["UPSTREAM_API_URL"]
        for status, body, media in RESPONSES:
            headers = Headers({"Content-Type": [media]})
            failed = response_error(status, headers, body, url=url, now=0, secrets=())
            yield f"{failed}. {advice(failed)}"
        yield str(headers_error(Headers({"Content-Type": ["text/html"]})))
        untrusted = Authority("one").issue("x").certificate
        for cause in (
            SSL.Error([("", "", "wrong version number")]),
            chain_problem(untrusted, UNKNOWN_ISSUER),
            error.DNSLookupError("x"),
        ):
            raised = self.assertRaises(
                UpstreamError, raise_upstream_error, Failure(cause)
            )
            yield str(raised)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            # A socket of systemd cannot be tried.
            yield from bind_problems(
                parse_addresses(f"systemd:domain=INET:index=0,{address}")
            )

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
