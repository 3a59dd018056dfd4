"""Findings of a network with hostile names and times."""

from datetime import UTC, datetime, timedelta, timezone

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.report import finding_line
from api_exporter.formatting import MAX_NAME_LENGTH, safe_line
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.report.account import finding_entry
from api_exporter.subjects.networks import Network, NetworkResource, NetworkRouter
from api_exporter.subjects.reverse_proxy import ProxyCluster, ProxyService
from api_exporter.subjects.routes import Route
from api_exporter.subjects.setup_keys import SetupKey
from api_exporter.subjects.watch import update_findings
from simulation.company.network import SimulatedNetwork as Demo
from tests.attention.looking import (
    DAY,
    NOW,
    FindingsKeeper,
    at,
    findings,
    group,
    peer,
    seen,
)
from tests.inventories import changed, inventory_of
from tests.subjects.test_demo import known
from tests.web.served import ServedTestCase
from tests.web.watched import Watched

HOSTILE = (
    "<script>alert(1)</script>",
    "a\nneeds attention: nothing",
    "\x1b[2J\x1b]0;owned\x07",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnorw\N{POP DIRECTIONAL FORMATTING}",
    "\N{LINE SEPARATOR}",
    "x" * 100_000,
    "שלום עולם",
    "\x85\x9b31m",
)

EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LATE = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12)))


def named(name: str) -> Inventory:
    """Return a network of which everything is wrong and has this name."""
    server = replace(peer("p", connected=False), name=name, approval_required=True)
    return inventory_of(
        peers=(server,),
        groups=(replace(group("servers", "p"), id="servers", name=name),),
        networks=(Network(id="n", name=name, routers=("x",), resources=("a",)),),
        network_routers=(NetworkRouter(id="x", enabled=True, peer="p"),),
        network_resources=(NetworkResource(id="a", name=name, enabled=True),),
        routes=(Route(id="r", network_id=name, network=name, enabled=True, peer="p"),),
        setup_keys=(
            SetupKey(
                id="k", name=name, type="reusable", expires=at(-DAY), last_used=at(-DAY)
            ),
        ),
        proxy_services=(ProxyService(id="s", name=name, mode="http", enabled=True),),
        proxy_clusters=(ProxyCluster(address=name),),
    )


class NamesTests(ServedTestCase):
    def test_plain(self) -> None:
        """A shortened name is one visible line, and a plain name stays as it is."""
        for name, expected in (
            ("a\nb\x1b\x07\x9b", "a�b���"),
            ("\N{RIGHT-TO-LEFT OVERRIDE}x\N{LINE SEPARATOR}", "�x�"),
            ("x" * 61, "x" * 59 + "…"),
            ("x" * 60, "x" * 60),
            ("שלום\N{NO-BREAK SPACE}עולם", "שלום\N{NO-BREAK SPACE}עולם"),
            ("👩\N{ZERO WIDTH JOINER}💻\n", "👩\N{ZERO WIDTH JOINER}💻�"),
            ("", ""),
        ):
            self.assertEqual(expected, safe_line(name))

    def test_findings(self) -> None:
        """A finding with any name is one line of limited length."""
        fine = seen(named("fine"), chosen=("servers",))
        alerts = {one.alert for one in findings(fine)}
        self.assertEqual(8, len(alerts))
        for name in HOSTILE:
            every = findings(seen(named(name), chosen=("servers",)))
            self.assertEqual(alerts, {one.alert for one in every})
            for one in every:
                line = finding_line(finding_entry(one, "", 0.0, NOW))
                self.assertEqual([line], line.splitlines())
                self.assertLess(len(line), 250 + 4 * MAX_NAME_LENGTH)
                for bad in "\x1b\x07\x9b\N{RIGHT-TO-LEFT OVERRIDE}":
                    self.assertNotIn(bad, line)

    def test_markup(self) -> None:
        """Markup in names is text on the page."""
        attention = FindingsKeeper(
            lambda: named(HOSTILE[0]),
            states={
                "peers": ResourceState(interval=30, ended_at=NOW, last_success=NOW)
            },
            now=lambda: NOW,
            clock=lambda: NOW,
        )
        attention.last = update_findings(attention.snapshot(), "peers", attention.last)
        watched = Watched()
        watched.findings = attention.last
        self.tree = watched.tree
        page = self.request("/")[2]
        self.assertIn(b"&lt;script", page)
        self.assertEqual(1, page.count(b"<script"))


class TimesTests(SynchronousTestCase):
    def test_times(self) -> None:
        """The first and the last possible instants, and a missing one, make a line."""
        for when in (EARLY, LATE, None, datetime(1970, 1, 1, tzinfo=UTC)):
            fine = named("fine")
            assert fine.peers is not None
            [server] = fine.peers
            old = replace(server, last_seen=when, created_at=when, last_login=when)
            owned = replace(
                old, id="q", user_id="u", connected=True, login_expiration_enabled=True
            )
            settings = NetBirdSettings(
                peer_login_expiration_enabled=True, peer_login_expiration=10 * 86400
            )
            key = SetupKey(id="k", type="reusable", expires=when, last_used=when)
            looked = seen(
                changed(
                    fine,
                    peers=(old, owned),
                    accounts=(NetBirdAccount(id="a", settings=settings),),
                    setup_keys=(key,),
                ),
                chosen=("servers",),
            )
            for one in findings(looked):
                self.assertTrue(finding_line(finding_entry(one, "", 0.0, NOW)))


class PersonalTests(SynchronousTestCase):
    def test_people(self) -> None:
        """With any EXPOSE_PERSONAL_DATA, no finding contains personal data."""
        inventory = known(Demo(120), NOW)
        personal = frozenset(("email", "name", "hostname", "serial_number"))
        looked = seen(replace(inventory, personal=personal), chosen=("All", "servers"))
        text = "\n".join(f"{one.object} {one.message}" for one in findings(looked))
        hidden = {
            secret
            for user in inventory.users or ()
            for secret in (user.email, user.name)
        } | {
            secret
            for one in inventory.peers or ()
            for secret in (one.hostname, one.connection_ip, one.serial_number)
        }
        self.assertGreater(len(hidden), 100)
        self.assertEqual([], [one for one in sorted(hidden - {""}) if one in text])
