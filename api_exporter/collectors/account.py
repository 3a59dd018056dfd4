"""The account's settings and the management server's version."""

from collections.abc import Iterable

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import Family, Metric, labels, timestamp
from api_exporter.netbird.facts.account import address_count, choices
from api_exporter.netbird.records import InstanceVersion, NetBirdAccount

ACCOUNTS = ObjectKind[NetBirdAccount](
    "accounts", "accounts[]", lambda account: labels(account_id=account.id)
)
VERSION = ObjectKind[InstanceVersion]("instance_version", "instance/version")


def _choices(metric: Metric, accounts: Iterable[NetBirdAccount]) -> Family:
    return Family(
        metric,
        (
            (labels(account_id=account.id, setting=name), int(value))
            for account in accounts
            for name, value in choices(account)
        ),
    )


ROWS = (
    ACCOUNTS.each(
        "netbird_api_account_info",
        "Properties of the account (always 1)",
        "accounts[].id, accounts[].domain",
        labels=lambda account: labels(account_id=account.id, domain=account.domain),
    ),
    ACCOUNTS.field(
        "netbird_api_account_created_timestamp_seconds",
        "Time when the account was created, in seconds since 1970",
        "created_at",
        timestamp,
    ),
    ACCOUNTS.field(
        "netbird_api_account_peer_login_expiration_enabled",
        "Whether logins of peers expire (1 = yes, 0 = no)",
        "settings.peer_login_expiration_enabled",
        lambda value: int(bool(value)),
        alert="0 where your rules require that logins expire",
    ),
    ACCOUNTS.field(
        "netbird_api_account_peer_inactivity_expiration_enabled",
        "Whether logins of inactive peers expire (1 = yes, 0 = no)",
        "settings.peer_inactivity_expiration_enabled",
        lambda value: int(bool(value)),
    ),
    ACCOUNTS.field(
        "netbird_api_account_peer_login_expiration_seconds",
        "Time in seconds after which the login of a peer expires",
        "settings.peer_login_expiration",
    ),
    ACCOUNTS.field(
        "netbird_api_account_peer_inactivity_expiration_seconds",
        "Time in seconds after which the login of an inactive peer expires",
        "settings.peer_inactivity_expiration",
    ),
    ACCOUNTS.family(
        "netbird_api_account_setting_enabled",
        "Whether a setting of the account is enabled (1 = yes, 0 = no)",
        "accounts[].settings, accounts[].settings.extra",
        _choices,
        alert="a value that differs from your rules",
    ),
    ACCOUNTS.field(
        "netbird_api_account_network_addresses",
        "Number of addresses for peers in the account's IPv4 range",
        "settings.network_range",
        address_count,
        alert="sum(netbird_api_peers) close to it: no peer can be added then",
    ),
    VERSION.each(
        "netbird_api_management_info",
        "Version of the management server (always 1)",
        "instance/version.management_current_version",
        labels=lambda version: labels(version=version.management_current_version),
    ),
    VERSION.field(
        "netbird_api_management_update_available",
        "Whether a newer version of the management server is available (1 = yes, 0 ="
        " no)",
        "management_update_available",
        alert="1 for weeks",
    ),
    VERSION.each(
        "netbird_api_management_available_info",
        "Newer version of the management server that is available (always 1)",
        "instance/version.management_available_version,"
        " where management_update_available",
        lambda v: (
            1
            if v.management_update_available and v.management_available_version
            else None
        ),
        labels=lambda version: labels(version=version.management_available_version),
    ),
)
