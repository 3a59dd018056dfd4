"""The account with its settings and setup keys, and the server's version."""

from collections.abc import Iterator

from api_exporter.demo.groups import ALL, RUNNERS, SERVERS
from api_exporter.demo.moment import Moment
from api_exporter.demo.peers import LOGIN_EXPIRATION
from api_exporter.demo.people import OWNER_ID
from api_exporter.demo.schedules import (
    DAY,
    FOUNDED,
    HOUR,
    MINUTE,
    MONDAY,
    WEEK,
)
from api_exporter.demo.story import NARROW_RANGE
from api_exporter.demo.wire import ZERO_TIME, rfc3339, xid


def accounts(moment: Moment) -> Iterator[object]:
    yield {
        "created_at": "2021-01-01T09:00:00Z",
        "created_by": OWNER_ID,
        "domain": "netbird.demo",
        "domain_category": "private",
        "id": xid("d2a", 1),
        "onboarding": {"onboarding_flow_pending": False, "signup_form_pending": False},
        "settings": {
            "agent_network_only": False,
            "auto_update_always": False,
            "auto_update_version": "disabled",
            "dns_domain": "",
            "embedded_idp_enabled": True,
            "extra": {
                "network_traffic_logs_enabled": False,
                "network_traffic_logs_groups": None,
                "network_traffic_packet_counter_enabled": False,
                "peer_approval_enabled": True,
                "user_approval_required": True,
            },
            "groups_propagation_enabled": True,
            "ipv6_enabled_groups": [ALL.id],
            "jwt_allow_groups": [],
            "jwt_groups_claim_name": "groups",
            "jwt_groups_enabled": True,
            "lazy_connection_enabled": True,
            "local_auth_disabled": False,
            "local_mfa_enabled": False,
            "metrics_push_enabled": False,
            "network_range": f"100.64.0.0/{_prefix(moment)}",
            "network_range_v6": "fd00:4e42:1a2b::/64",
            "peer_expose_enabled": False,
            "peer_expose_groups": None,
            "peer_inactivity_expiration": 10 * MINUTE,
            "peer_inactivity_expiration_enabled": False,
            "peer_login_expiration": LOGIN_EXPIRATION,
            "peer_login_expiration_enabled": True,
            "regular_users_view_blocked": True,
            "routing_peer_dns_resolution_enabled": True,
        },
    }


def _prefix(moment: Moment) -> int:
    """Of the address range: NetBird's own choice, where so many machines fit in."""
    narrow = 32 - (moment.machines + 1).bit_length()
    return narrow if NARROW_RANGE.lasts(moment.at) else min(16, narrow - 2)


def instance_version(_moment: Moment) -> object:
    return {
        "dashboard_available_version": "2.58.0",
        "management_available_version": "0.77.1",
        "management_current_version": "0.76.3",
        "management_update_available": True,
    }


def setup_keys(moment: Moment) -> Iterator[object]:
    renewed, monday = moment.latest(WEEK), moment.latest(WEEK, MONDAY)
    yield _setup_key(
        1,
        "ci runners, renewed every week",
        auto_groups=[RUNNERS.id],
        ephemeral=True,
        expires=rfc3339(renewed + WEEK + DAY // 2, ".500112"),
        last_used=rfc3339(moment.latest(7 * MINUTE), ".10021"),
        updated_at=rfc3339(renewed, ".500112"),
        used_times=(moment.latest(7 * MINUTE) - FOUNDED) // (7 * MINUTE),
    )
    yield _setup_key(
        2,
        "never expires",
        auto_groups=[SERVERS.id],
        expires=ZERO_TIME,
        last_used=rfc3339(moment.latest(5 * HOUR)),
        used_times=731,
    )
    yield _setup_key(
        3,
        "one machine a day",
        last_used=rfc3339(moment.latest(DAY)),
        usage_limit=10,
        used_times=2 + int(moment.at - monday) // DAY,
    )
    yield _setup_key(
        4,
        "one laptop",
        expires="2025-06-01T10:00:00Z",
        last_used="2025-05-02T10:00:00Z",
        state="expired",
        type="one-off",
        usage_limit=1,
        used_times=1,
    )
    yield _setup_key(
        5,
        "one laptop",
        auto_groups=None,
        last_used="2025-05-02T10:00:00Z",
        state="overused",
        type="one-off",
        usage_limit=1,
        used_times=1,
    )
    yield _setup_key(
        6,
        'leaked "prod" key',
        last_used="2025-04-01T00:00:00+02:00",
        revoked=True,
        state="revoked",
        used_times=3,
    )
    emptied = moment.latest(50 * MINUTE)
    uses = min(5, int(moment.at - emptied) // (8 * MINUTE))
    yield _setup_key(
        7,
        "guests, refilled when it is used up",
        last_used=rfc3339(emptied + uses * 8 * MINUTE),
        state="overused" if uses == 5 else "valid",
        usage_limit=5,
        used_times=uses,
    )


def _setup_key(number: int, name: str, **fields: object) -> dict[str, object]:
    return {
        "allow_extra_dns_labels": False,
        "auto_groups": [],
        "ephemeral": False,
        "expires": "2045-05-01T10:00:00Z",
        "id": xid("d2s", number),
        "key": f"A616{number}****",
        "last_used": ZERO_TIME,
        "name": name,
        "revoked": False,
        "state": "valid",
        "type": "reusable",
        "updated_at": "2025-05-01T10:00:00.5Z",
        "usage_limit": 0,
        "used_times": 0,
        "valid": fields.get("state", "valid") == "valid",
        **fields,
    }
