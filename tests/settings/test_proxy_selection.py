"""The selected proxy and the reason for it; NO_PROXY as in Go."""

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, convert
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings import parsers
from api_exporter.settings.proxy import DIRECT, Proxy, excluded, proxy, select_proxy

URL = "https://api.example"

TABLE = Path(__file__).parent / "no_proxy.json"


class Row(Struct):
    """Go's result for an environment and an address: `checks/acceptance/no_proxy`."""

    environ: Mapping[str, str]
    url: str
    proxy: str
    error: bool


def rows() -> list[Row]:
    return convert(json.loads(TABLE.read_text()), list[Row])


def written(proxy: Proxy | None) -> str:
    """Return the form that Go prints, but always with a port."""
    if proxy is None:
        return ""
    login = ""
    if proxy.login is not None:
        packed = proxy.login.reveal().removeprefix("Basic ")
        login = b64decode(packed).decode() + "@"
    return f"http://{login}{proxy}"


class SelectionTests(SynchronousTestCase):
    def test_reason(self) -> None:
        """The reason is the variable that decides, as it is spelt."""
        given = {"HTTPS_PROXY": "proxy.example:1"}
        for environ, text in (
            ({}, "direct"),
            (given, "through proxy.example:1 (HTTPS_PROXY)"),
            ({"https_proxy": "x:2", **given}, "through x:2 (https_proxy)"),
            ({"NO_PROXY": "example", **given}, "direct (NO_PROXY)"),
            ({"no_proxy": "*", **given}, "direct (no_proxy)"),
            ({"NO_PROXY": "example"}, "direct"),
            ({"HTTPS_PROXY": "  "}, "direct"),
        ):
            self.assertEqual(text, str(select_proxy(URL, None, environ)), environ)
        found = select_proxy("https://[::1]:8443", None, given)
        self.assertEqual("direct (loopback)", str(found))

    def test_own(self) -> None:
        """UPSTREAM_PROXY takes precedence over all variables, for loopback too."""
        environ = {"HTTPS_PROXY": "proxy.example", "NO_PROXY": "*"}
        for url in (URL, "http://localhost", "https://127.0.0.1"):
            taken = select_proxy(url, proxy("own.example:1"), environ)
            self.assertEqual("through own.example:1 (UPSTREAM_PROXY)", str(taken))
            self.assertIs(DIRECT, select_proxy(url, "none", environ))

    def test_refused(self) -> None:
        """A proxy from the environment that would be used but is wrong is an error."""
        secret = "socks5://me:c4nary@proxy.example"
        given = {"https_proxy": secret}
        error = self.assertRaises(ValueError, select_proxy, URL, None, given)
        self.assertEqual(
            "https_proxy: its value is not allowed: it must be the address of an http"
            " proxy (the scheme must be http, also for an https API);"
            " UPSTREAM_PROXY=none uses no proxy",
            str(error),
        )
        unused = {"https_proxy": secret, "NO_PROXY": "api.example"}
        self.assertIsNone(select_proxy(URL, None, unused).proxy)
        self.assertIs(DIRECT, select_proxy("http://api.example", None, given))

    def test_strangers(self) -> None:
        """HTTP_PROXY is refused if a client may have set it."""
        environ = {"HTTP_PROXY": "proxy.example", "REQUEST_METHOD": "GET"}
        url = "http://api.example"
        error = self.assertRaises(ValueError, select_proxy, url, None, environ)
        self.assertIn("HTTP_PROXY cannot be trusted", str(error))


class GoTests(SynchronousTestCase):
    def test_table(self) -> None:
        """Every row has the proxy that Go selects, or Go's error.

        Except after a dot at the end of a name: it is for DNS alone. And a proxy with
        TLS is an error.
        """
        self.assertGreater(len(rows()), 140)
        for row in rows():
            try:
                url = parsers.url(row.url)
                taken = written(select_proxy(url, None, row.environ).proxy)
            except ValueError:
                self.assertTrue(row.error or row.proxy.startswith("https:"), row)
                continue
            self.assertFalse(row.error, row)
            proxies = {row.proxy, f"{row.proxy}:80"}
            if row.url.endswith(("localhost.", "api.example.")):
                proxies = {""}
            self.assertIn(taken, proxies, row)


class ExcludedTests(SynchronousTestCase):
    @given(st.text(max_size=60), st.sampled_from(["a.example", "10.0.0.1", "fd00::1"]))
    def test_anything(self, listed: str, host: str) -> None:
        """Any list gives a result."""
        self.assertIn(excluded(listed, host, 443), {True, False})

    def test_no_name(self) -> None:
        """A name that is not valid in any script matches no host."""
        self.assertFalse(excluded("ü..example", "api.example", 443))
        self.assertFalse(excluded("1:2:3/64:5", "api.example", 443))
