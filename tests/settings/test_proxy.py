"""Addresses of proxies, and the secrets in them."""

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.proxy import Proxy, proxy, proxy_or_none

SECRET = "c4nary"


class ProxyTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        """Scheme, user and port are optional; the text form is host and port."""
        for text, words in (
            ("proxy.example", "proxy.example:80"),
            ("proxy.example:3128", "proxy.example:3128"),
            ("http://proxy.example:3128/", "proxy.example:3128"),
            ("HTTP://Proxy.Example", "proxy.example:80"),
            ("http://me:x@[FD00::1]", "[fd00::1]:80"),
            ("10.0.0.1:8080", "10.0.0.1:8080"),
            ("http://pro_xy:1", "pro_xy:1"),
            ("http://münchen.example", "xn--mnchen-3ya.example:80"),
            (f"me:{SECRET}@proxy.example:1", "proxy.example:1"),
        ):
            found = proxy(text)
            host, _, port = words.rpartition(":")
            self.assertEqual(words, str(found))
            self.assertEqual((host.strip("[]"), int(port)), (found.host, found.port))

    @given(st.text(max_size=20), st.text(max_size=20))
    def test_login(self, user: str, password: str) -> None:
        """User and password are decoded, with any characters in them."""
        texts = [text.encode(errors="replace") for text in (user, password)]
        packed = ["".join(f"%{byte:02x}" for byte in text) for text in texts]
        found = proxy(f"http://{':'.join(packed)}@proxy.example")
        assert found.login is not None
        plain = f"{user}:{password}".encode(errors="replace")
        self.assertEqual(f"Basic {b64encode(plain).decode()}", found.login.reveal())

    def test_secrets(self) -> None:
        """The password is secret in each form, unless it is short."""
        for text, secrets in (
            ("proxy.example", set[str]()),
            ("http://me@proxy.example", {b64encode(b"me:").decode()}),
            (
                "http://me:c4n%40ry@proxy.example",
                {b64encode(b"me:c4n@ry").decode(), "c4n@ry", "c4n%40ry"},
            ),
        ):
            self.assertEqual(secrets, {s.reveal() for s in proxy(text).secrets})

    def test_unseen(self) -> None:
        """No text form of the proxy contains user or password."""
        found = proxy(f"http://meme:{SECRET}@proxy.example")
        for text in (repr(found), str(found), f"{found}", repr([found])):
            self.assertNotIn(SECRET, text)
            self.assertNotIn("meme", text)
            self.assertNotIn(b64encode(f"meme:{SECRET}".encode()).decode(), text)

    def test_refused(self) -> None:
        """A wrong address is refused, and the error repeats no part of it."""
        for text, why in (
            (f"socks5://me:{SECRET}@proxy.example", "the scheme must be"),
            (f"me:{SECRET}", "the port must be a number"),
            (f"http://me:{SECRET}@", "the address has no host"),
            (f"http://me:{SECRET}@:80", "the address has no host"),
            (f"http://{SECRET}:x@proxy.example:99999", "the port must be a number"),
            (f"http://me:/{SECRET}@proxy.example", "port"),
            (f"http://me:1/{SECRET}@proxy.example", "nothing may follow the port"),
            (f"http://me:1?{SECRET}@proxy.example", "nothing may follow the port"),
            (f"http://me:1#{SECRET}@proxy.example", "nothing may follow the port"),
            (f"http://me:%{SECRET[1:]}zz%@proxy.example", "%25"),
            (f"http://me:{SECRET} @proxy.example", "a space or control"),
            (f"http://me:{SECRET}\n@proxy.example", "a space or control"),
            (f"http://me:{SECRET}@proxy.example:0", "port 0 is not allowed"),
            (f"http://me:{SECRET}@pro xy", "a space or control"),
            (f"http://me:{SECRET}@a..b", "the host must be"),
            (f"http://me:{SECRET}@[fd00::1%25eth0]", "the host must be"),
            (f"http://me:{SECRET}@[fd00", "the port must be a number"),
        ):
            error = self.assertRaises(ValueError, proxy, text)
            self.assertIn(why, str(error), text)
            self.assertNotIn(SECRET, str(error))

    def test_none(self) -> None:
        """`none` is accepted in any case."""
        for text in ("none", "None", "NONE"):
            self.assertEqual("none", proxy_or_none(text))
        self.assertIsInstance(proxy_or_none("none.example"), Proxy)
