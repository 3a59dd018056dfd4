"""The pages of several accounts, of each and of all together."""

import json
import re
from collections.abc import Mapping

from twisted.internet.task import Clock
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from api_exporter.ports import ALL_ACCOUNTS, Accounts, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.site import BoundedSite
from api_exporter.telemetry.account import accounts_summary
from api_exporter.telemetry.process import register_account_gauges
from api_exporter.web.context import SiteContext
from api_exporter.web.tree import tree
from tests.web.connection import Connection
from tests.web.served import ServedTestCase
from tests.web.watched import Watched, lost_routes

REFUSED = UpstreamError("auth", "401: token <invalid>")
PEERS = re.compile(r"netbird_api_peers\{connected=\"true\"\} (\d+)")


class Knowing(Resource):
    """The pages for a client that may see some accounts."""

    def __init__(self, tree: Resource, known: Accounts) -> None:
        super().__init__()
        self._tree = tree
        self._known = known

    def getChildWithDefault(  # noqa: N802 - the name is Twisted's
        self, path: bytes, request: Request
    ) -> IResource:
        request.accounts = self._known  # type: ignore[attr-defined]
        found: IResource = self._tree.getChildWithDefault(path, request)
        return found


def several(accounts: Mapping[str, AccountNetwork], context: SiteContext) -> Resource:
    """Return the pages for any number of accounts."""
    telemetries = {name: network.telemetry for name, network in accounts.items()}
    register_account_gauges(context.process.registry, lambda: telemetries)
    return tree(accounts, context, lookup=False)


class AccountsTestCase(ServedTestCase):
    """Three accounts: one works, one has a refused token, one was never refreshed."""

    def setUp(self) -> None:
        self.acme = Watched(name="acme", peers=20)
        self.beta, self.gamma = Watched(name="beta"), Watched(name="gamma")
        self.beta.down = REFUSED
        self.acme.start()
        self.beta.start()
        self.accounts = {"acme": self.acme, "beta": self.beta, "gamma": self.gamma}
        watched = Watched()
        watched.clock.advance(20)
        self.context = watched.context
        self.pages = several(self.accounts, self.context)
        self.tree = Knowing(self.pages, ALL_ACCOUNTS)

    def text(self, path: str, status: int = 200, **headers: str) -> str:
        found, _, body = self.request(path, **headers)
        self.assertEqual(status, found, body)
        return body.decode()


class MetricsTests(AccountsTestCase):
    def test_of_the_process(self) -> None:
        """Without a name the page has metrics of the process and of each account."""
        page = self.text("/metrics")
        self.assertIn("api_exporter_build_info", page)
        self.assertIn("api_exporter_accounts 3.0", page)
        self.assertIn('api_exporter_account_up{account="acme"} 1.0', page)
        self.assertIn('api_exporter_account_up{account="beta"} 0.0', page)
        self.assertNotIn('account="gamma"', page)
        self.assertNotIn("netbird_api_", page.replace("HELP", "").split("# T")[0])
        self.assertNotRegex(page, PEERS)


class StateTests(AccountsTestCase):
    def test_health(self) -> None:
        """The health of all accounts has the `up` of each; a name selects one."""
        found = json.loads(self.text("/health"))
        ups = {"acme": {"up": True}, "beta": {"up": False}, "gamma": {"up": None}}
        self.assertEqual(ups, found["accounts"])
        self.assertNotIn("url", json.dumps(found))
        one = json.loads(self.text("/health?account=beta"))
        self.assertEqual("auth", one["resources"]["peers"]["last_error_reason"])

    def test_ready(self) -> None:
        """One ready account is enough; a name selects the one to check."""
        found = json.loads(self.text("/ready"))
        each = {"acme": True, "beta": False, "gamma": False}
        self.assertEqual({"ready": True, "accounts": each}, found)
        self.text("/ready?account=beta", 503)
        self.tree = several({"beta": self.beta}, Watched().context)
        self.assertFalse(json.loads(self.text("/ready", 503))["ready"])

    def test_empty_shard(self) -> None:
        """A shard without accounts is ready."""
        self.tree = several({}, Watched().context)
        self.assertTrue(json.loads(self.text("/ready"))["ready"])
        self.assertIn("This shard has no account", self.text("/"))
        self.assertEqual([], json.loads(self.text("/sd/accounts")))
        self.assertIn("api_exporter_accounts 0.0", self.text("/metrics"))

    def test_overview(self) -> None:
        """The list has the worst account first, each with a link and its problem."""
        page = self.text("/")
        self.assertIn("<title>1 of 3 accounts working – api-exporter</title>", page)
        links = re.findall(r'href="\?account=(\w+)"', page)
        self.assertEqual(["beta", "gamma", "acme"], links)
        self.assertIn("401: token &lt;invalid&gt;", page)
        for of_account in ("<invalid>", "netbird.example", "Newest requests"):
            self.assertNotIn(of_account, page)
        telemetries = [a.telemetry for a in (self.acme, self.beta, self.gamma)]
        self.assertEqual("1 of 3 accounts up", accounts_summary(telemetries))

    def test_state(self) -> None:
        """An account that can be read, but has a critical finding, is not green."""
        acme = Watched(name="acme", collectors=("peers", "groups", "routes"))
        acme.bodies["api/routes"] = lost_routes("x")
        acme.start()
        accounts = {"acme": acme, "beta": self.beta, "gamma": self.gamma}
        self.tree = Knowing(several(accounts, Watched().context), ALL_ACCOUNTS)
        page = self.text("/")
        self.assertIn('<span class="state critical">1 critical', page)
        self.assertIn("Route x to 10.0.0.0/8 leads to no connected peer", page)
        links = re.findall(r'href="\?account=(\w+)"', page)
        self.assertEqual(["beta", "gamma", "acme"], links)
        strips = re.findall('over the last 6 hours: ([a-z, ]+)"', page)
        self.assertEqual(["unread", "unread", "unread, critical"], strips)

    def test_page_of_one(self) -> None:
        """An account's page has its name in title and links, and a link to `/`."""
        page = self.text("/?account=acme")
        self.assertIn("<title>Working – acme – api-exporter</title>", page)
        for link in ("metrics", "health", "ready"):
            self.assertIn(f'href="{link}?account=acme"', page)
        self.assertIn('href="./"', page)
        self.assertNotIn("beta", page)
        findings = self.text("/findings?account=acme")
        self.assertIn('<a href="./?account=acme">Status page</a>', findings)


class TargetsTests(AccountsTestCase):
    def test_targets(self) -> None:
        """Each account is a target at the requested address."""
        _, headers, body = self.request("/sd/accounts")
        self.assert_headers(headers, content_type="application/json")
        for name, found in zip(self.accounts, json.loads(body), strict=True):
            labels = {"__param_account": name, "account": name}
            expected = {"targets": ["exporter.example"], "labels": labels}
            self.assertEqual(expected, found)

    def test_metrics_path(self) -> None:
        """A metrics path other than the default is a label."""
        context = Watched(metrics_path="/a/b").context
        self.tree = Knowing(several({"acme": self.acme}, context), ALL_ACCOUNTS)
        [found] = json.loads(self.text("/sd/accounts"))
        self.assertEqual("/a/b", found["labels"]["__metrics_path__"])
        self.assertRegex(self.text("/a/b?account=acme"), PEERS)

    def test_address(self) -> None:
        """A valid address in the query is used; an invalid one is refused."""
        for good in ("exporter:8080", "10.0.0.1:1", "[fd00::1]:8080", "a_b"):
            found = json.loads(self.text(f"/sd/accounts?address={good}"))
            self.assertEqual([good], found[0]["targets"])
        bad = ("", "a:0", "a:65536", "a/b", "fd00::1", "[:::::]", "[...]:80", "a%22:1")
        for query in (
            *(f"?address={address}" for address in bad),
            *("?address=a:1&address=b:1", "?adress=a:1"),
        ):
            self.assertIn("?address=HOST:PORT", self.text(f"/sd/accounts{query}", 400))

    def test_two_hosts(self) -> None:
        """A request with two Host headers is refused."""
        connection = Connection(BoundedSite(self.tree, Clock()))
        connection.send(b"GET /sd/accounts HTTP/1.1\r\nHost: a:1\r\nHost: b:1\r\n\r\n")
        self.assertIn(b" 400 ", connection.heard().splitlines()[0])


class DiscoveryTests(AccountsTestCase):
    """Service discovery of each account's peers."""

    def test_wrong(self) -> None:
        """The error of an invalid query has the account's name, or a placeholder."""
        missing = "account is missing: request /sd?account=NAME&port=9100\n"
        line = "port is missing: request /sd?account=acme&port=9100 or another port"
        for query, expected in (
            ("", missing),
            ("?port=1", missing),
            ("?port=1&group=here", missing),
            ("?account=acme", f"{line} of the targets\n"),
        ):
            self.assertEqual(expected, self.text(f"/sd{query}", 400))

    def test_each_its_own(self) -> None:
        """An account without known peers does not affect another one."""
        for name, words in (("beta", "401: token"), ("gamma", "next refresh has not")):
            self.assertIn(words, self.text(f"/sd?port=1&account={name}", 503))
        acme = self.text("/sd?port=1&account=acme")
        self.gamma.start()
        self.assertNotEqual(acme, self.text("/sd?port=1&account=gamma"))


class LimitedTests(AccountsTestCase):
    def test_lists(self) -> None:
        """A client sees only the accounts that it is allowed to see."""
        whole = self.tree
        self.assertEqual(3, len(json.loads(self.text("/sd/accounts"))))
        for pages, names in (
            (Knowing(self.pages, frozenset({"acme", "nobody"})), ["acme"]),
            (self.pages, list[str]()),  # without permissions
        ):
            self.tree = pages
            targets = json.loads(self.text("/sd/accounts"))
            self.assertEqual(names, [one["labels"]["account"] for one in targets])
            page = self.text("/")
            self.assertEqual(bool(names), "acme" in page)
            self.assertEqual(bool(names), "1 of 1 account working" in page)
            self.assertNotRegex(page, "beta|gamma")
        self.tree = whole
        self.assertIn("beta", self.text("/"))
