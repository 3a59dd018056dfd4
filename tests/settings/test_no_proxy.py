"""NO_PROXY and its siblings, held against what Go makes of them."""

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, convert
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings import parsers
from api_exporter.settings.no_proxy import excluded
from api_exporter.settings.proxy import Proxy
from api_exporter.settings.proxy_selection import select_proxy

TABLE = Path(__file__).parent / "no_proxy.json"


class Row(Struct):
    """What Go says to an environment and an address (`acceptance/no_proxy/main.go`)."""

    environ: Mapping[str, str]
    url: str
    proxy: str
    error: bool


def rows() -> list[Row]:
    return convert(json.loads(TABLE.read_text()), list[Row])


def told(proxy: Proxy | None) -> str:
    """As Go tells it, but for the port, which is always there."""
    if proxy is None:
        return ""
    login = ""
    if proxy.login is not None:
        packed = proxy.login.header.reveal().removeprefix("Basic ")
        login = b64decode(packed).decode() + "@"
    return f"http{'s' * proxy.secure}://{login}{proxy}"


class TableTests(SynchronousTestCase):
    def test_go(self) -> None:
        """Every row has the proxy that Go takes, or is refused as Go refuses it."""
        self.assertGreater(len(rows()), 140)
        for row in rows():
            try:
                taken = told(
                    select_proxy(parsers.url(row.url), None, row.environ).proxy
                )
            except ValueError:
                self.assertTrue(row.error, row)
                continue
            self.assertFalse(row.error, row)
            self.assertIn(
                taken, {row.proxy, f"{row.proxy}:80", f"{row.proxy}:443"}, row
            )


class ExcludedTests(SynchronousTestCase):
    @given(st.text(max_size=60), st.sampled_from(["a.example", "10.0.0.1", "fd00::1"]))
    def test_anything(self, listed: str, host: str) -> None:
        """Whatever is listed, there is an answer."""
        self.assertIn(excluded(listed, host, 443), {True, False})

    @given(st.lists(st.sampled_from([r.environ.get("NO_PROXY", "") for r in rows()])))
    def test_union(self, lists: list[str]) -> None:
        """A list names whom one of its parts names."""
        whole = ",".join(lists)
        for host in ("api.example", "10.0.0.1", "fd00::1", "xn--bcher-kva.example"):
            self.assertEqual(
                any(excluded(part, host, 443) for part in lists),
                excluded(whole, host, 443),
            )

    def test_no_name(self) -> None:
        """What cannot be a name in any script names nobody."""
        self.assertFalse(excluded("ü..example", "api.example", 443))
        self.assertFalse(excluded("1:2:3/64:5", "api.example", 443))
