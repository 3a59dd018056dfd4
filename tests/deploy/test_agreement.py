"""Findings and alerts agree on the same bodies and the same thresholds."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finding import join_lines
from api_exporter.attention.thresholds import Groups, Thresholds, default_thresholds
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings, Peer, User
from api_exporter.subjects.networks import NetworkResource
from api_exporter.subjects.reverse_proxy import ProxyToken
from api_exporter.subjects.setup_keys import SetupKey
from api_exporter.subjects.users import AccessToken
from simulation.company.network import SimulatedNetwork
from simulation.company.schedules import HOUR, MINUTE, WEEK
from tests.attention.looking import DAY, NOW, at, findings, group, peer, seen
from tests.attention.test_demo import BEGIN, NAMED, known
from tests.bodies import STOCK_TIME, recorded
from tests.collectors.samples import page
from tests.deploy.agreement import Record, Rules, contradictions
from tests.inventories import inventory_of

FIRST = BEGIN + 5 * HOUR + 40 * MINUTE
"""The begin of the first window. Others include the line cut and Friday 5 p.m."""

DEMO_STEP = 10 * MINUTE
"""Seconds between two steps of the simulated company's week."""

LOOKS = 2
"""Evaluations in each step of the week: a series older than five minutes ends."""


EVALUATED = 7
"""Hours of an unchanged network, after which no alert is pending."""

MARGIN = 2 * HOUR
"""Seconds between a value and its threshold."""

USES = 1000

LIFETIME = 30 * 86400
"""Seconds for which a login is valid."""


class DemoTests(SynchronousTestCase):
    def test_week(self) -> None:
        """In the simulated company's week, findings and alerts agree. The test
        evaluates two of every seven hours, each as a separate target.
        """
        rules = Rules(self.mktemp(), NAMED)
        network, records = SimulatedNetwork(30), []
        for begin in range(FIRST, BEGIN + WEEK - 2 * HOUR, 7 * HOUR):
            record = Record(f"{(begin - BEGIN) / HOUR:.0f} h", begin)
            for now in range(begin, begin + 2 * HOUR, DEMO_STEP):
                inventory = known(network, now)
                found = findings(seen(inventory, now=now, thresholds=NAMED))
                told = {one.alert for one in found}
                text = page(inventory) + "netbird_api_up 1\nup 1"
                for _ in range(LOOKS):
                    record.look(text, told, rules.wanted)
            records.append(record)
        step = DEMO_STEP // LOOKS
        fired = rules.fired(records, step)
        wrong = [
            one
            for record in records
            for one in contradictions(record, fired[record.name], rules.waits, step)
        ]
        self.assertEqual([], wrong, "\n".join(["", *wrong]))


def network(thresholds: Thresholds, side: int) -> Inventory:
    """Return a network with all values on one side of their thresholds. `side` is 1 for
    values that cause alerts, else -1.
    """
    days, shares = thresholds.days, thresholds.shares

    def ends(name: str) -> datetime:
        return at(days[name] * DAY - side * MARGIN)

    limit = min(days["login_soon"] * DAY, shares["login_soon"] * LIFETIME)
    in_use = at(-days["in_use"] * DAY + side * MARGIN)
    room = 62
    taken = int(shares["addresses_used"] * room) + (side + 1) // 2
    peers = tuple(
        Peer(
            id=f"p{number}",
            name=f"p{number}",
            connected=True,
            user_id="u",
            login_expiration_enabled=True,
            last_login=at(limit - LIFETIME - side * MARGIN),
        )
        for number in range(taken)
    )
    key = SetupKey(id="", type="reusable", state="valid", last_used=at(0))
    spent = round(USES * shares["setup_key_used"]) - (1 - side) // 2
    tokens = [
        AccessToken(id=name, expiration_date=ends(name), last_used=at(0))
        for name in ("access_token_soon", "access_token_very_soon")
    ]
    settings = NetBirdSettings(
        network_range="10.0.0.0/26",
        peer_login_expiration_enabled=True,
        peer_login_expiration=LIFETIME,
    )
    return inventory_of(
        peers=peers,
        groups=(group("servers", "p0"), group("routers", "p0")),
        users=(User(id="me", is_current=True, is_service_user=True),),
        accounts=(NetBirdAccount(id="a", settings=settings),),
        access_tokens=tuple(tokens),
        setup_keys=(
            replace(key, id="soon", expires=ends("setup_key_soon")),
            replace(key, id="idle", state="expired", expires=at(0), last_used=in_use),
            replace(key, id="spent", usage_limit=USES, used_times=spent),
        ),
        proxy_tokens=(
            ProxyToken(id="soon", expires_at=ends("proxy_token_soon"), last_used=at(0)),
            ProxyToken(id="idle", expires_at=at(DAY), last_used=in_use),
        ),
        network_resources=(NetworkResource(id="of no network", enabled=True),),
    )


class StockNetwork:
    """A recorded new account: a dozen healthy peers, and NetBird's defaults."""

    def body(self, path: str, _at: float, /) -> Iterator[bytes] | None:
        found = recorded("stock").get(path[1:])
        return None if found is None else iter((found,))


class ThresholdsTests(SynchronousTestCase):
    def counted(
        self, inventory: Inventory, thresholds: Thresholds, now: float = NOW
    ) -> Counter[str]:
        """Return the number of alerts of each name, which equals that of findings."""
        rules = Rules(self.mktemp(), thresholds)
        step = 5 * MINUTE
        record = Record("a", now - EVALUATED * HOUR)
        text = page(inventory) + "up 1"
        for _ in range(EVALUATED * HOUR // step + 1):
            record.look(text, (), rules.wanted)
        fired = rules.fired([record], step)[record.name][-1]
        snapshot = seen(inventory, now=now, thresholds=thresholds)
        found = join_lines(findings(snapshot))
        self.assertEqual(fired, Counter(one.alert for one in found))
        return fired

    def test_same(self) -> None:
        """Alerts and findings agree on both sides of each threshold."""
        usual = default_thresholds()
        other = replace(
            usual,
            days={name: days + 3 for name, days in usual.days.items()},
            shares=usual.shares | {"addresses_used": 0.5, "setup_key_used": 0.6},
        )
        share = replace(usual, shares=usual.shares | {"login_soon": 0.02})
        told = [
            self.counted(network(thresholds, side), thresholds)
            for thresholds in (usual, other, share)
            for side in (1, -1)
        ]
        self.assertEqual(told[:2] * 2, told[2:])
        self.assertEqual(
            {
                "ApiExporterTokenExpiresSoon": 1,
                "ApiExporterTokenExpiresVerySoon": 1,
                "NetBirdAddressPoolNearlyFull": 1,
                "NetBirdLoginExpiresSoon": 1,
                "NetBirdProxyTokenExpiresSoon": 2,
                "NetBirdSetupKeyExpiresSoon": 2,
                "NetBirdSetupKeyUsedUp": 1,
            },
            told[0],
        )
        self.assertEqual({"ApiExporterTokenExpiresSoon": 1}, told[1])

    def test_stock(self) -> None:
        """A new account has neither findings nor alerts."""
        inventory = known(StockNetwork(), STOCK_TIME)
        self.assertEqual(12, len(inventory.peers or ()))
        found = self.counted(inventory, default_thresholds(), STOCK_TIME)
        self.assertEqual({}, found)

    def test_groups(self) -> None:
        """Both find the named groups by name or id, and report missing ones."""
        inventory = inventory_of(
            peers=(peer("up"), peer("down", connected=False)),
            groups=(
                group("servers", "up", "down"),
                group("databases", "down"),
                group("gates", "down"),
                group("laptops", "down"),
                group("routers", "up", "down", "of nobody"),
            ),
        )
        groups = Groups(
            important=["servers", "g-databases", "gone"],
            routers=["routers", "g-gates", "g-gone"],
        )
        expected = {
            "NetBirdImportantGroupMissing": 2,
            "NetBirdImportantPeerOffline": 2,
            "NetBirdRouterGroupDown": 1,
        }
        usual = default_thresholds()
        named = replace(usual, groups=groups)
        self.assertEqual(expected, self.counted(inventory, named))
        self.assertEqual({}, self.counted(inventory, usual))
