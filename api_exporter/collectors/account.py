"""The account's settings and the management server's version."""

from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, labels, single, timestamps
from api_exporter.netbird.facts.account import addresses
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Account

READS = ("accounts", "instance_version")

INFO = Metric(
    name="netbird_api_account_info",
    help="Properties of the account. Always 1.",
    source="accounts[].id, accounts[].domain",
)
CREATED = Metric(
    name="netbird_api_account_created_timestamp_seconds",
    help="When the account was created.",
    source="accounts[].created_at",
)
LOGIN_EXPIRATION_ENABLED = Metric(
    name="netbird_api_account_peer_login_expiration_enabled",
    help="Whether logins of peers expire.",
    source="accounts[].settings.peer_login_expiration_enabled",
    alert="0 where a rule demands that logins expire",
)
INACTIVITY_EXPIRATION_ENABLED = Metric(
    name="netbird_api_account_peer_inactivity_expiration_enabled",
    help="Whether logins of inactive peers expire.",
    source="accounts[].settings.peer_inactivity_expiration_enabled",
)
LOGIN_EXPIRATION = Metric(
    name="netbird_api_account_peer_login_expiration_seconds",
    help="For how long a login of a peer lasts.",
    source="accounts[].settings.peer_login_expiration",
)
INACTIVITY_EXPIRATION = Metric(
    name="netbird_api_account_peer_inactivity_expiration_seconds",
    help="After how long the login of an inactive peer expires.",
    source="accounts[].settings.peer_inactivity_expiration",
)
NETWORK_ADDRESSES = Metric(
    name="netbird_api_account_network_addresses",
    help="Number of addresses that the account's IPv4 range has for peers.",
    source="accounts[].settings.network_range",
    alert="sum(netbird_api_peers) close to it: no peer can be added then",
)
MANAGEMENT_INFO = Metric(
    name="netbird_api_management_info",
    help="Version of the management server. Always 1.",
    source="instance/version.management_current_version",
)
UPDATE_AVAILABLE = Metric(
    name="netbird_api_management_update_available",
    help="Whether there is a newer version of the management server.",
    source="instance/version.management_update_available",
    alert="1 for weeks",
)
AVAILABLE_INFO = Metric(
    name="netbird_api_management_available_info",
    help="Version of the management server that is available; absent without an update."
    " Always 1.",
    source="instance/version.management_available_version,"
    " where management_update_available",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the account and of the server."""
    if inventory.accounts is not None:
        yield from _account(inventory.accounts)
    for version in inventory.instance_version or ():
        name = labels(version=version.management_current_version)
        yield single(MANAGEMENT_INFO, 1, name)
        yield single(UPDATE_AVAILABLE, int(version.management_update_available))
        available = version.management_available_version
        if version.management_update_available and available:
            yield single(AVAILABLE_INFO, 1, labels(version=available))


def _account(accounts: tuple[Account, ...]) -> Iterator[Family]:
    yield Family(
        INFO, ((labels(account_id=a.id, domain=a.domain), 1) for a in accounts)
    )
    keyed = [(labels(account_id=account.id), account) for account in accounts]
    yield timestamps(CREATED, ((key, account.created_at) for key, account in keyed))
    settings = [(key, account.settings) for key, account in keyed]
    yield Family(
        LOGIN_EXPIRATION_ENABLED,
        ((key, int(s.peer_login_expiration_enabled)) for key, s in settings),
    )
    yield Family(
        INACTIVITY_EXPIRATION_ENABLED,
        ((key, int(s.peer_inactivity_expiration_enabled)) for key, s in settings),
    )
    yield Family(
        LOGIN_EXPIRATION, ((key, s.peer_login_expiration) for key, s in settings)
    )
    yield Family(
        INACTIVITY_EXPIRATION,
        ((key, s.peer_inactivity_expiration) for key, s in settings),
    )
    yield Family(
        NETWORK_ADDRESSES,
        (
            (key, count)
            for key, s in settings
            if (count := addresses(s.network_range)) is not None
        ),
    )
