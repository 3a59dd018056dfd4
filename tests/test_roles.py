"""A token whose user may read only a part: the part is not published as the whole."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import CurrentUser, Permissions, User
from api_exporter.netbird.resources import ACCESS_LOG, CURRENT_USER, PEERS
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME, RULES, SUBJECTS
from tests.inventories import inventory_of
from tests.parts import CURRENT_USER as CURRENT_PATH
from tests.parts import SERVICE_USER
from tools.roles import ROLES, SERVICE, Watched, granted, network, results

OF_PEERS = {"resource": "peers"}


class RolesTests(SynchronousTestCase):
    def test_never_half(self) -> None:
        """A resource that a role may not read is withheld, and no other is."""
        for role in ROLES:
            for name, result in results(role).items():
                whole = granted(role, RULES.permissions[name])
                self.assertEqual("whole" if whole else "withheld", result, (role, name))

    def test_modules(self) -> None:
        """Each resource has its permission module, or is for every login."""
        every = {CURRENT_USER, "instance_version"}
        self.assertEqual(every, set(RESOURCE_BY_NAME) - set(RULES.permissions))
        self.assertIn(ACCESS_LOG, RULES.permissions)

    def test_own_rows(self) -> None:
        """Without the grants, the page has neither cost nor denials of agents."""
        text = network("admin").text().decode()
        for family in ("agent_denied_requests", "users{"):
            self.assertIn(f"\nnetbird_api_{family}", text)
        for role in ("network_admin", "user", "billing_admin"):
            text = network(role).text().decode()
            self.assertNotIn("\nnetbird_api_agent", text)

    def test_states(self) -> None:
        """The state is `restricted`, for resources that wake later too."""
        telemetry = network("network_admin").telemetry
        standing = telemetry.states["proxy_services"]
        self.assertEqual("restricted", standing.word(0.0))
        self.assertEqual((False, None), (standing.supported, standing.up))
        self.assertEqual(set(), set(RULES.dormant_without) & set(telemetry.states))
        watched = Watched("usage_viewer")
        self.assertEqual("restricted", watched.state("agent_denials"))
        self.assertEqual("fresh", watched.state("agent_usage"))

    def test_finding(self) -> None:
        """One finding names the role and what is missing; a service user has none."""
        found = network("usage_viewer").findings.found.findings
        [finding] = [f.text for f in found if "token's user" in f.subject]
        self.assertIn("has the role usage_viewer and may not read everything.", finding)
        self.assertIn("setup_keys, networks, network_routers", finding)
        self.assertNotIn("peers", finding)
        found = network("user").findings.found.findings
        [finding] = [f.text for f in found if "token's user" in f.subject]
        self.assertEqual(1, finding.count("peers"))
        self.assertIn("The exporter withholds peers, accounts,", finding)
        for role in (SERVICE, "auditor"):
            found = network(role).findings.found.findings
            self.assertNotIn("token's user", " ".join(f.text for f in found))


class PeersTests(SynchronousTestCase):
    def test_part(self) -> None:
        """A part of the peers is read on time and not published; `up` stays 1."""
        for role in ("user", "restricted_user", "billing_admin"):
            watched = Watched(role)
            before = watched.requests.count("api/peers")
            watched.advance(300)
            self.assertEqual({(None, False), (True, False)}, {*watched.seen}, role)
            self.assertEqual(10, watched.requests.count("api/peers") - before, role)
            self.assertNotIn("peer", watched.network.text().decode())
            self.assertEqual(((True, False), "restricted"), self.standing(watched))
            values = {
                family.name: [s for s in family.samples if s.labels in ({}, OF_PEERS)]
                for family in watched.network.telemetry.registry.collect()
            }
            self.assertEqual([1.0], [s.value for s in values["netbird_api_up"]])
            supported = values["api_exporter_resource_supported"]
            self.assertEqual([0.0], [s.value for s in supported])
            for name in ("up", "records"):
                self.assertEqual([], values[f"api_exporter_resource_{name}"], name)

    def test_start(self) -> None:
        """After a start, peers are published when the permissions were read."""
        for role, failure in (
            ("admin", None),
            (SERVICE, UpstreamError("forbidden", "403")),
            ("admin", UpstreamError("http_5xx", "500")),
        ):
            watched = Watched(role, failure)
            self.assertEqual(["api/peers", CURRENT_PATH], watched.requests[:2])
            expected = [(None, False), (None, False), (True, True)]
            self.assertEqual(expected, watched.seen[:3], failure)

    def test_outage(self) -> None:
        """Peers stay withheld while the permissions cannot be read, and after it."""
        for fails_too in (None, UpstreamError("http_5xx", "500")):
            watched = Watched("user")
            watched.failure = UpstreamError("http_5xx", "500")
            watched.peers_failure = fails_too
            watched.advance(7200)
            self.assertTrue(watched.network.states[CURRENT_USER].withdrawn)
            watched.failure = watched.peers_failure = None
            watched.advance(900)
            self.assertEqual(((True, False), "restricted"), self.standing(watched))
            self.assertNotIn(True, [is_shown for _, is_shown in watched.seen])

    def test_changes(self) -> None:
        """The peers follow the permission both ways; `up` stays 1, without a flood."""
        watched = Watched("admin")
        ups = list[bool | None]()
        states = watched.network.states
        states.on_up_changed = lambda: ups.append(states[PEERS].up)
        for role, state in (("user", "restricted"), ("admin", "fresh")):
            watched.role = role
            before = watched.requests.count("api/peers")
            watched.advance(660)
            self.assertEqual(state, watched.state(PEERS))
            self.assertLess(watched.requests.count("api/peers") - before, 26)
            shown = "\nnetbird_api_peers{" in watched.network.text().decode()
            self.assertEqual(state == "fresh", shown)
        self.assertEqual([], ups)

    def test_joins(self) -> None:
        """Without the peers, no family that needs them is on the page."""
        denied = {"peers": {"read": False}}
        user = CurrentUser(id="me", permissions=Permissions(modules=denied))
        known = Watched("auditor").network.inventory
        after = known.replacing("current_user", (user,))
        self.assertEqual({PEERS}, known.records.keys() - after.records.keys())
        rows = [row for subject in SUBJECTS for row in subject.families]
        needy = {row.metric.name for row in rows if PEERS in row.needs}
        self.assertGreater(len(needy), 20)
        for subject in SUBJECTS:
            measured = subject.collector().make_families(after, {})
            shown = {f.metric.name for f in measured if [*f.samples]}
            self.assertEqual(set(), shown & needy, subject.module)

    def standing(self, watched: Watched) -> tuple[tuple[bool | None, ...], str]:
        state = watched.network.states[PEERS]
        return (state.up, state.supported), watched.state(PEERS)


class ChangesTests(SynchronousTestCase):
    def test_role_changes(self) -> None:
        """Resources that the new role may read only in part are withdrawn."""
        watched = Watched("admin")
        self.assertIn("\nnetbird_api_agent_denied_requests", self.text(watched))
        watched.role = "network_admin"
        watched.advance(630)
        text = self.text(watched)
        for family in ("agent_", "services"):
            self.assertNotIn(f"\nnetbird_api_{family}", text)
        self.assertIn("\nnetbird_api_routes", text)
        self.assertEqual("restricted", watched.state("proxy_services"))
        asked = len(watched.requests)
        watched.advance(3600)
        self.assertNotIn("reverse-proxies", " ".join(watched.requests[asked:]))
        watched.role = "admin"
        watched.advance(660)
        self.assertIn("\nnetbird_api_agent_denied_requests", self.text(watched))
        self.assertEqual("fresh", watched.state("proxy_services"))

    def test_unknown(self) -> None:
        """If the permissions are unknown, all resources are published."""
        for failure in (
            SERVICE_USER,
            UpstreamError("http_4xx", "405", unsupported=True),
            UpstreamError("not_found", "404", unsupported=True),
            UpstreamError("not_found", "404: user", server_message="user"),
            UpstreamError("http_5xx", "500"),
        ):
            watched = Watched("network_admin", failure)
            self.assertIn("\nnetbird_api_agent_usage_cost_usd{", self.text(watched))
            state = "failing" if failure.reason == "http_5xx" else "unsupported"
            self.assertEqual(state, watched.state(CURRENT_USER))
            self.assertEqual("unsupported", watched.state("proxy_services"))

    def test_fails_later(self) -> None:
        """A failed refresh of the permissions changes nothing; a new token does."""
        watched = Watched("network_admin")
        watched.failure = UpstreamError("http_5xx", "500")
        watched.advance(1200)
        self.assertEqual("failing", watched.state(CURRENT_USER))
        self.assertEqual("restricted", watched.state("proxy_services"))
        watched.role, watched.failure = SERVICE, None
        watched.advance(1200)
        self.assertEqual("fresh", watched.state("proxy_services"))

    def test_people(self) -> None:
        """A missing permission, and one of a service user, withhold nothing."""
        denied = {"routes": {"read": False}, "users": {"create": False}}
        for modules, service, withheld in (
            (denied, False, {"routes"}),
            (denied, True, set()),
            (None, False, set()),
        ):
            known = Permissions(modules=modules)
            user = CurrentUser(
                id="me", role="custom", is_service_user=service, permissions=known
            )
            found = inventory_of(current_user=(user,))
            self.assertEqual((withheld, "custom"), (found.withheld, found.role))
        you = User(id="you", role="user", is_current=True)
        other = inventory_of(current_user=(CurrentUser(id="me"),), users=(you,))
        self.assertEqual(("user", {PEERS}), (other.role, other.withheld))
        self.assertEqual("", inventory_of().role)

    def text(self, watched: Watched) -> str:
        return watched.network.text().decode()
