"""The simulated API's records have the keys of the real one's, no more and no less."""

from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.network import PATHS, Network
from api_exporter.demo.people import EXPORTER_ID
from tests.demo.test_network import NOW, read

GROUP = "id name peers_count resources_count"

SHAPES = {
    "/api/accounts": "created_at created_by domain domain_category id onboarding "
    "settings",
    "/api/accounts onboarding": "onboarding_flow_pending signup_form_pending",
    "/api/accounts settings": "agent_network_only auto_update_always "
    "auto_update_version dns_domain embedded_idp_enabled extra "
    "groups_propagation_enabled ipv6_enabled_groups jwt_allow_groups "
    "jwt_groups_claim_name jwt_groups_enabled lazy_connection_enabled "
    "local_auth_disabled local_mfa_enabled metrics_push_enabled network_range "
    "network_range_v6 peer_expose_enabled peer_expose_groups "
    "peer_inactivity_expiration peer_inactivity_expiration_enabled "
    "peer_login_expiration peer_login_expiration_enabled regular_users_view_blocked "
    "routing_peer_dns_resolution_enabled",
    "/api/accounts settings extra": "network_traffic_logs_enabled "
    "network_traffic_logs_groups network_traffic_packet_counter_enabled "
    "peer_approval_enabled user_approval_required",
    "/api/dns/nameservers": "description domains enabled groups id name nameservers "
    "primary search_domains_enabled",
    "/api/dns/nameservers nameservers": "ip ns_type port",
    "/api/dns/settings": "disabled_management_groups",
    "/api/dns/zones": "distribution_groups domain enable_search_domain enabled id name "
    "records",
    "/api/dns/zones records": "content id name ttl type",
    "/api/events/audit": "activity activity_code id initiator_email initiator_id "
    "initiator_name meta target_id timestamp",
    "/api/groups": f"issued peers resources {GROUP}",
    "/api/groups peers": "id name",
    "/api/groups resources": "id type",
    "/api/instance/version": "dashboard_available_version "
    "management_available_version management_current_version "
    "management_update_available",
    "/api/networks": "description id name policies resources routers "
    "routing_peers_count",
    "/api/networks/resources": "address description enabled groups id name type",
    "/api/networks/resources groups": GROUP,
    "/api/networks/routers": "enabled id masquerade metric peer peer_groups",
    "/api/peers": "accessible_peers_count approval_required city_name connected "
    "connection_ip country_code created_at disapproval_reason? dns_label ephemeral "
    "extra_dns_labels geoname_id groups hostname id inactivity_expiration_enabled ip "
    "ipv6 kernel_version last_login last_seen local_flags login_expiration_enabled "
    "login_expired name os serial_number ssh_enabled ui_version user_id version",
    "/api/peers groups": GROUP,
    "/api/peers local_flags": "block_inbound block_lan_access disable_client_routes "
    "disable_dns disable_firewall disable_server_routes lazy_connection_enabled "
    "rosenpass_enabled rosenpass_permissive server_ssh_allowed",
    "/api/policies": "description enabled id name rules source_posture_checks",
    "/api/policies rules": "action bidirectional description destinationResource? "
    "destinations enabled id name port_ranges? ports? protocol sources",
    "/api/policies rules destinations": GROUP,
    "/api/policies rules sources": GROUP,
    "/api/posture-checks": "checks description id name",
    "/api/reverse-proxies/clusters": "address connected_proxies id online private? "
    "require_subdomain? supports_crowdsec? supports_custom_ports? type",
    "/api/reverse-proxies/domains": "domain id require_subdomain? supports_crowdsec? "
    "supports_custom_ports? supports_private? target_cluster? type validated",
    "/api/reverse-proxies/proxy-tokens": "created_at expires_at? id last_used? name "
    "revoked",
    "/api/reverse-proxies/services": "access_restrictions? auth domain enabled id "
    "listen_port meta mode name pass_host_header port_auto_assigned private "
    "proxy_cluster rewrite_redirects targets terminated",
    "/api/reverse-proxies/services access_restrictions": "allowed_cidrs "
    "blocked_countries",
    "/api/reverse-proxies/services meta": "certificate_issued_at? created_at status",
    "/api/reverse-proxies/services targets": "enabled host options path port protocol "
    "target_id target_type",
    "/api/routes": "access_control_groups? description domains enabled groups id "
    "keep_route masquerade metric network network_id network_type peer peer_groups? "
    "skip_auto_apply",
    "/api/setup-keys": "allow_extra_dns_labels auto_groups ephemeral expires id key "
    "last_used name revoked state type updated_at usage_limit used_times valid",
    "/api/users": "auto_groups email id idp_id? is_blocked is_current is_service_user "
    "issued last_login name pending_approval role status",
    f"/api/users/{EXPORTER_ID}/tokens": "created_at created_by expiration_date id "
    "last_used? name",
}
"""The keys of each path's records, and of the records at a place inside of them. A
question mark stands behind a key that may be absent."""


class ShapeTests(SynchronousTestCase):
    network = Network(60)

    def test_every_path(self) -> None:
        """No path is left out here."""
        self.assertEqual(set(PATHS), {place.split()[0] for place in SHAPES})

    def test_keys(self) -> None:
        """Every record has all keys that always occur, sorted, and no unknown one."""
        for place, keys in SHAPES.items():
            known = {key.rstrip("?") for key in keys.split()}
            required = {key for key in keys.split() if not key.endswith("?")}
            seen: set[str] = set()
            for record in self.records(place):
                self.assertEqual(sorted(record), list(record))
                self.assertLessEqual(required, set(record), place)
                seen |= set(record)
            self.assertEqual(known, seen, place)

    def records(self, place: str) -> Iterator[dict[str, object]]:
        path, *inner = place.split()
        found: list[object] = list(read(self.network, path, NOW))
        while True:
            records = [record for record in _flat(found) if isinstance(record, dict)]
            if not inner:
                yield from records
                return
            key = inner.pop(0)
            found = [record[key] for record in records if key in record]


def _flat(values: list[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value
