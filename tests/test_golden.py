"""The whole page: byte for byte, in both formats, and against the contract."""

import shutil
import subprocess
from unittest import SkipTest

from msgspec.structs import fields
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.table import COLLECTORS
from api_exporter.exposition.text import unit
from api_exporter.netbird.inventory import Inventory
from tests.bodies import body, decoded, inventory
from tests.collectors import incumbent
from tests.collectors.samples import DROP_IN, PREFIX, page, parsed
from tests.golden import FOLDER, pages

PEER = "peer_id peer"
GROUP = "group_id group"
TOKEN = "token_id token user_id"
KEY = "setup_key_id setup_key"
NETWORK = "network_id network"
ROUTE = "route_id network_id"
POLICY = "policy_id policy"
CHECK = "posture_check_id posture_check"
NAMESERVER_GROUP = "nameserver_group_id nameserver_group"
SERVICE = "proxy_service_id proxy_service"
TOKEN_OF_PROXY = "proxy_token_id proxy_token"
RESOURCE = "network_resource_id network_resource"
ZONE = "dns_zone_id dns_zone"

CONTRACT = {
    "peers": "connected",
    "peers_by_os": "os",
    "peers_by_version": "version",
    "peers_by_country": "country",
    "peers_login_expired": "",
    "peers_approval_required": "",
    "peers_ssh_enabled": "",
    "peers_ephemeral": "",
    "peers_never_logged_in": "",
    "peers_by_enrolment": "enrolled_by connected",
    "peer_info": f"{PEER} dns_label ip os version ui_version country user_id"
    " ssh_enabled ephemeral ipv6 kernel_version"
    " + city hostname connection_ip serial_number",
    "peer_connected": PEER,
    "peer_last_seen_timestamp_seconds": PEER,
    "peer_created_timestamp_seconds": PEER,
    "peer_last_login_timestamp_seconds": PEER,
    "peer_login_expired": PEER,
    "peer_login_expiration_timestamp_seconds": PEER,
    "peer_approval_required": PEER,
    "groups": "issued",
    "group_info": f"{GROUP} issued",
    "group_peers": GROUP,
    "group_peers_connected": GROUP,
    "group_peers_offline": GROUP,
    "group_resources": GROUP,
    "group_resources_by_type": f"{GROUP} resource_type",
    "users": "role status service_user",
    "users_blocked": "",
    "users_pending_approval": "",
    "user_info": "user_id role status service_user issued + name email",
    "user_last_login_timestamp_seconds": "user_id",
    "user_auto_groups": "user_id",
    "access_token_expiration_timestamp_seconds": TOKEN,
    "access_token_last_used_timestamp_seconds": TOKEN,
    "setup_keys": "key_type state ephemeral",
    "setup_key_info": f"{KEY} key_type ephemeral",
    "setup_key_valid": KEY,
    "setup_key_expiration_timestamp_seconds": KEY,
    "setup_key_last_used_timestamp_seconds": KEY,
    "setup_key_auto_groups": KEY,
    "setup_key_used_times": KEY,
    "setup_key_usage_limit": KEY,
    "setup_key_state": f"{KEY} state",
    "networks": "",
    "network_info": NETWORK,
    "network_resources": f"{NETWORK} enabled",
    "network_policies": NETWORK,
    "network_routing_peers": NETWORK,
    "network_routing_peers_connected": NETWORK,
    "network_router_enabled": "network_id router_id",
    "network_router_metric": "network_id router_id",
    "network_resource_info": f"{RESOURCE} network_id resource_type address",
    "network_resource_enabled": RESOURCE,
    "network_resource_routing_peers_connected": RESOURCE,
    "network_resource_groups": RESOURCE,
    "routes": "network_type enabled masquerade",
    "route_info": f"{ROUTE} network_type network",
    "route_enabled": ROUTE,
    "route_routing_peers": ROUTE,
    "route_routing_peers_connected": ROUTE,
    "policies": "enabled",
    "policy_rules": "action protocol enabled",
    "policy_info": POLICY,
    "policy_enabled": POLICY,
    "policy_enabled_rules": POLICY,
    "policy_empty_sides": POLICY,
    "posture_checks": "",
    "posture_check_info": CHECK,
    "posture_check_policies": CHECK,
    "posture_check_peers_below_min_version": CHECK,
    "nameserver_groups": "enabled",
    "nameserver_group_info": f"{NAMESERVER_GROUP} primary",
    "nameserver_group_enabled": NAMESERVER_GROUP,
    "nameserver_group_nameservers": NAMESERVER_GROUP,
    "nameserver_group_domains": NAMESERVER_GROUP,
    "nameserver_group_groups": NAMESERVER_GROUP,
    "nameservers": "ns_type port",
    "dns_disabled_management_groups": "",
    "dns_zones": "enabled",
    "dns_zone_info": f"{ZONE} domain",
    "dns_zone_enabled": ZONE,
    "dns_zone_records": f"{ZONE} record_type",
    "account_info": "account_id domain",
    "account_created_timestamp_seconds": "account_id",
    "account_peer_login_expiration_enabled": "account_id",
    "account_peer_inactivity_expiration_enabled": "account_id",
    "account_peer_login_expiration_seconds": "account_id",
    "account_peer_inactivity_expiration_seconds": "account_id",
    "account_network_addresses": "account_id",
    "management_info": "version",
    "management_update_available": "",
    "management_available_info": "version",
    "proxy_services": "status",
    "proxy_service_info": f"{SERVICE} mode domain",
    "proxy_service_status": f"{SERVICE} status",
    "proxy_service_enabled": SERVICE,
    "proxy_service_authenticated": SERVICE,
    "proxy_service_restricted": SERVICE,
    "proxy_service_certificate_issued_timestamp_seconds": SERVICE,
    "proxy_domain_validated": "proxy_domain_id domain",
    "proxy_cluster_online": "proxy_cluster",
    "proxy_cluster_connected_proxies": "proxy_cluster",
    "proxy_token_expiration_timestamp_seconds": TOKEN_OF_PROXY,
    "proxy_token_last_used_timestamp_seconds": TOKEN_OF_PROXY,
    "group_member": f"{GROUP} {PEER}",
    "audit_events": "activity_code",
    "audit_event_last_timestamp_seconds": "activity_code",
}
"""Every family in the order of the page, with its labels; personal ones after the +."""


def shape(text: str) -> dict[str, set[str]]:
    """The label names of each family's samples; one set of them where all is well."""
    return {
        family.name: {" ".join(sample.labels) for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


class GoldenTests(SynchronousTestCase):
    def test_bytes(self) -> None:
        """The pages are those in tests/golden (`python -m tests.golden` rewrites)."""
        for name, text in pages().items():
            self.assertEqual(
                (FOLDER / name).read_text(encoding="utf-8").split("\n"),
                text.decode().split("\n"),
            )

    def test_contract(self) -> None:
        """Every family has its name and its labels, in their order, on every sample."""
        for personal in (False, True):
            expected = {
                PREFIX + name: {
                    labels.replace(" + ", " ") if personal else labels.split(" + ")[0]
                }
                for name, labels in CONTRACT.items()
            }
            found = shape(page(inventory(personal=personal)))
            self.assertEqual(list(expected), list(found))
            for name, labels in expected.items():
                self.assertEqual(labels, found[name], name)

    def test_drop_in(self) -> None:
        """So has every family of `drop_in`, whether its labels are filled or not."""
        expected = {
            incumbent.PREFIX + name: {labels}
            for name, labels in incumbent.LABELS.items()
        }
        for personal in (False, True):
            found = shape(page(inventory(personal=personal), DROP_IN))
            self.assertEqual(list(expected), list(found))
            self.assertEqual(expected, found)

    def test_formats(self) -> None:
        """Both formats read the same from it: gauges only, each explained once.

        The unit is for OpenMetrics alone.
        """
        text = page(inventory(), COLLECTORS)
        plain = list(text_string_to_metric_families(text))
        strict = list(openmetrics.text_string_to_metric_families(f"{text}# EOF\n"))
        for family in strict:
            self.assertEqual(unit(family.name), family.unit)
            family.unit = ""
        self.assertEqual(plain, strict)
        self.assertEqual(len(CONTRACT) + len(incumbent.LABELS), len(plain))
        for family in plain:
            self.assertEqual("gauge", family.type)
            self.assertTrue(family.documentation.endswith("."), family.name)

    def test_unique(self) -> None:
        """No two samples share name and labels: the parsers would let that pass."""
        for personal in (False, True):
            samples = parsed(page(inventory(personal=personal), COLLECTORS))
            self.assertEqual(len(samples), len(dict(samples)))

    def test_order(self) -> None:
        """The upstream's order, which is random, changes nothing but the order."""
        known = inventory()
        turned = known
        for field in fields(Inventory):
            records = getattr(known, field.name)
            if field.name not in {"personal", "changes", "detail"}:
                turned = turned.with_(field.name, records[::-1])
        pages = [dict(parsed(page(each, COLLECTORS))) for each in (known, turned)]
        self.assertEqual(*pages)

    def test_partitions(self) -> None:
        """Counts by state add up to the number of objects."""
        known = inventory()
        sums: dict[str, float] = {}
        for (name, _), value in parsed(page(known)):
            sums[name] = sums.get(name, 0) + value
        for name, objects in {
            "peers": known.peers,
            "peers_by_os": known.peers,
            "peers_by_version": known.peers,
            "peers_by_country": known.peers,
            "groups": known.groups,
            "users": known.users,
            "setup_keys": known.setup_keys,
            "networks": known.networks,
            "routes": known.routes,
            "policies": known.policies,
            "posture_checks": known.posture_checks,
            "nameserver_groups": known.nameservers,
            "dns_zones": known.dns_zones,
            "proxy_services": known.proxy_services,
            "audit_events": known.events,
        }.items():
            self.assertEqual(len(objects or ()), sums[PREFIX + name], name)

    def test_promtool(self) -> None:
        """Prometheus's own linter has nothing to say, but of the other's names."""
        if shutil.which("promtool") is None:
            raise SkipTest("missing program: promtool")
        for personal in (False, True):
            linter = subprocess.run(
                ["promtool", "check", "metrics"],
                input=page(inventory(personal=personal)).encode(),
                capture_output=True,
                check=False,
            )
            self.assertEqual(
                (b"", b"", 0), (linter.stdout, linter.stderr, linter.returncode)
            )


class VariantTests(SynchronousTestCase):
    def test_offline_server(self) -> None:
        """A server without the outside world knows its version and of no update."""
        text = page(inventory(instance_version="instance_version_offline"))
        self.assertIn(f'{PREFIX}management_info{{version="development"}} 1\n', text)
        self.assertIn(f"{PREFIX}management_update_available 0\n", text)

    def test_sparse_account(self) -> None:
        """An account without expiry ends all ends of logins, and a tiny range is 0."""
        text = page(inventory(accounts="accounts_sparse"))
        self.assertNotIn("peer_login_expiration_timestamp_seconds", text)
        self.assertNotIn("account_created_timestamp_seconds", text)
        self.assertIn(
            'account_network_addresses{account_id="account-sparse"} 0\n', text
        )

    def test_null(self) -> None:
        """A body or a list that is null is an empty one: known, and nothing in it."""
        for resource, variant, family in (
            ("access_tokens", "null", "access_token_expiration_timestamp_seconds"),
            ("network_resources", "null", "network_resources"),
            ("dns_settings", "dns_settings_none", "dns_disabled_management_groups"),
        ):
            known = inventory()
            empty = known.with_(resource, decoded(resource, body(variant)).records)
            full, none = (
                sum(
                    value
                    for (name, _), value in parsed(page(each))
                    if name == PREFIX + family
                )
                for each in (known, empty)
            )
            self.assertLess(0, full)
            self.assertEqual(0, none)
