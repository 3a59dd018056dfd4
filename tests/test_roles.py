"""A token whose user may read only a part: nothing of it is published as the whole."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import MODULES, OF_AGENTS
from api_exporter.netbird.resources import ACCESS_LOG, BY_NAME, CURRENT_USER, UP
from tests.roles import ROLES, SERVICE, granted, network, results


class RolesTests(SynchronousTestCase):
    def test_never_half(self) -> None:
        """What a role may not read is withheld, and nothing else is."""
        for role in ROLES:
            for name, result in results(role).items():
                whole = granted(role, MODULES.get(name, UP))
                expected = "part" if name == UP else "withheld"
                self.assertEqual("whole" if whole else expected, result, (role, name))

    def test_modules(self) -> None:
        """Each resource has its permission module, or is for every login."""
        every = {UP, CURRENT_USER, "instance_version"}
        self.assertEqual(every, set(BY_NAME) - set(MODULES))
        self.assertIn(ACCESS_LOG, MODULES)

    def test_own_rows(self) -> None:
        """Without the grants, the page has neither cost nor denials of agents."""
        text = network("admin").text().decode()
        for family in ("agent_denied_requests", "users{"):
            self.assertIn(f"\nnetbird_api_{family}", text)
        for role in ("network_admin", "user", "billing_admin"):
            text = network(role).text().decode()
            self.assertNotIn("\nnetbird_api_agent", text)

    def test_states(self) -> None:
        """The state is `restricted`, as unsupported as after a refusal."""
        telemetry = network("network_admin").telemetry
        standing = telemetry.standings["proxy_services"]
        self.assertEqual("restricted", standing.state(0.0))
        self.assertEqual((False, None), (standing.supported, standing.up))
        self.assertEqual(set(), set(OF_AGENTS) & set(telemetry.standings))

    def test_finding(self) -> None:
        """One finding names the role and what is missing; a service user has none."""
        [finding] = [
            f.text
            for f in network("usage_viewer").attention.found.findings
            if "token's user" in f.object
        ]
        self.assertIn("has the role usage_viewer and may not read everything.", finding)
        self.assertIn("setup_keys, networks, network_routers", finding)
        self.assertNotIn("list of peers", finding)
        for role in (SERVICE, "auditor"):
            found = network(role).attention.found.findings
            self.assertNotIn("token's user", " ".join(f.text for f in found))
