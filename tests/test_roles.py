"""A token whose user may read only a part: the part is not published as the whole."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import CurrentUser, Permissions, User
from api_exporter.netbird.resources import ACCESS_LOG, CURRENT_USER, UP
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME, RULES
from tests.inventories import inventory_of
from tests.logbook import logbook
from tests.parts import SERVICE_USER
from tests.roles import ROLES, SERVICE, Watched, granted, network, results


class RolesTests(SynchronousTestCase):
    def test_never_half(self) -> None:
        """A resource that a role may not read is withheld, and no other is."""
        for role in ROLES:
            for name, result in results(role).items():
                whole = granted(role, RULES.permissions.get(name, UP))
                expected = "part" if name == UP else "withheld"
                self.assertEqual("whole" if whole else expected, result, (role, name))

    def test_modules(self) -> None:
        """Each resource has its permission module, or is for every login."""
        every = {UP, CURRENT_USER, "instance_version"}
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
        standing = telemetry.freshness["proxy_services"]
        self.assertEqual("restricted", standing.state(0.0))
        self.assertEqual((False, None), (standing.supported, standing.up))
        self.assertEqual(set(), set(RULES.dormant_without) & set(telemetry.freshness))
        watched = Watched("usage_viewer")
        self.assertEqual("restricted", watched.state("agent_denials"))
        self.assertEqual("fresh", watched.state("agent_usage"))

    def test_finding(self) -> None:
        """One finding names the role and what is missing; a service user has none."""
        found = network("usage_viewer").attention.found.findings
        [finding] = [f.text for f in found if "token's user" in f.subject]
        self.assertIn("has the role usage_viewer and may not read everything.", finding)
        self.assertIn("setup_keys, networks, network_routers", finding)
        self.assertNotIn("list of peers", finding)
        for role in (SERVICE, "auditor"):
            found = network(role).attention.found.findings
            self.assertNotIn("token's user", " ".join(f.text for f in found))


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

    def test_log(self) -> None:
        """Each withheld resource has one log line; a service user has none."""
        book = logbook(self)
        watched = Watched("network_admin")
        watched.advance(3 * 3600)
        words = "the token's user may not read all of it"
        line = f"info proxy_services is withheld: {words}"
        self.assertEqual(1, book.lines().count(line))
        said = len(book.lines())
        Watched(SERVICE).advance(3 * 3600)
        self.assertEqual([], [li for li in book.lines()[said:] if "current_user" in li])

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
            self.assertEqual(withheld, found.withheld)
            self.assertEqual(("custom", False), (found.role, found.partial_peers))
        you = User(id="you", role="user", is_current=True)
        other = inventory_of(current_user=(CurrentUser(id="me"),), users=(you,))
        self.assertEqual(("user", True), (other.role, other.partial_peers))
        self.assertEqual("", inventory_of().role)

    def text(self, watched: Watched) -> str:
        return watched.network.text().decode()
