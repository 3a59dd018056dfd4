"""Which way is taken, and who is named for it."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.proxy import proxy
from api_exporter.settings.proxy_selection import DIRECT, select_proxy

URL = "https://api.example"


class WayTests(SynchronousTestCase):
    def test_words(self) -> None:
        """The way is told with the variable that is to blame, as it is spelt."""
        given = {"HTTPS_PROXY": "proxy.example:1"}
        for environ, words in (
            ({}, "direct"),
            (given, "through proxy.example:1 (HTTPS_PROXY)"),
            ({"https_proxy": "x:2", **given}, "through x:2 (https_proxy)"),
            ({"NO_PROXY": "example", **given}, "direct (NO_PROXY)"),
            ({"no_proxy": "*", **given}, "direct (no_proxy)"),
            ({"NO_PROXY": "example"}, "direct"),
            ({"HTTPS_PROXY": "  "}, "direct"),
        ):
            self.assertEqual(words, str(select_proxy(URL, None, environ)), environ)
        self.assertEqual(
            "direct (loopback)", str(select_proxy("https://[::1]:8443", None, given))
        )

    def test_own(self) -> None:
        """UPSTREAM_PROXY is taken whatever else is said, for loopback, too."""
        environ = {"HTTPS_PROXY": "proxy.example", "NO_PROXY": "*"}
        for url in (URL, "http://localhost", "https://127.0.0.1"):
            taken = select_proxy(url, proxy("own.example:1"), environ)
            self.assertEqual("through own.example:1 (UPSTREAM_PROXY)", str(taken))
            self.assertIs(DIRECT, select_proxy(url, "none", environ))

    def test_refused(self) -> None:
        """A proxy of the environment that would be taken, but cannot be, is told."""
        secret = "socks5://me:c4nary@proxy.example"
        error = self.assertRaises(
            ValueError, select_proxy, URL, None, {"https_proxy": secret}
        )
        self.assertEqual(
            "https_proxy: its value is not allowed: it must be the address of an http"
            " or https proxy (the scheme must be http or https);"
            " UPSTREAM_PROXY=none goes without",
            str(error),
        )
        unused = {"https_proxy": secret, "NO_PROXY": "api.example"}
        self.assertIsNone(select_proxy(URL, None, unused).proxy)
        self.assertIs(
            DIRECT, select_proxy("http://api.example", None, {"https_proxy": secret})
        )

    def test_strangers(self) -> None:
        """HTTP_PROXY is not trusted where a stranger may have set it."""
        environ = {"HTTP_PROXY": "proxy.example", "REQUEST_METHOD": "GET"}
        error = self.assertRaises(
            ValueError, select_proxy, "http://api.example", None, environ
        )
        self.assertIn("HTTP_PROXY cannot be trusted", str(error))
