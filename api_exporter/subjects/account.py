"""The account's settings and the management server's version."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

from msgspec import Struct

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import Sample, labels, timestamp
from api_exporter.netbird.bodies import DocumentDecoder, ListDecoder
from api_exporter.netbird.records import NetBirdAccount, ShownText, choices
from api_exporter.netbird.resources import MINUTE, SERVER_VERSION, Resource
from api_exporter.subjects import Subject


class InstanceVersion(Struct, frozen=True, gc=False, kw_only=True):
    """The management server's version (`/api/instance/version`)."""

    management_current_version: str = ""
    management_update_available: bool = False
    management_available_version: ShownText = ""


# The first account counts.
ACCOUNTS = Resource(
    "accounts",
    "api/accounts",
    ListDecoder(NetBirdAccount, ordered=True),
    5 * MINUTE,
    permission="settings",
    place=2,
)
INSTANCE_VERSION = Resource(
    SERVER_VERSION,
    "api/instance/version",
    DocumentDecoder(InstanceVersion),
    60 * MINUTE,
    place=5,
)


def address_count(network: str) -> int | None:
    """Return how many peers fit into an IPv4 range; None for anything else."""
    if not network.rpartition("/")[2].isdecimal():  # an address, or a mask
        return None
    try:
        size = IPv4Network(network, strict=False).num_addresses
    except ValueError:
        return None
    return max(0, size - 2)


ACCOUNT = ObjectKind[NetBirdAccount](
    ACCOUNTS, lambda account: labels(account_id=account.id)
)

VERSION = ObjectKind[InstanceVersion](INSTANCE_VERSION)


def _choices(accounts: Iterable[NetBirdAccount]) -> Iterator[Sample]:
    for account in accounts:
        for name, value in choices(account):
            yield labels(account_id=account.id, setting=name), int(value)


FAMILIES = (
    ACCOUNT.info(
        "netbird_api_account_info",
        "Properties of the account (always 1)",
        {"domain": "domain"},
        source="accounts[].id, accounts[].domain",
    ),
    ACCOUNT.field(
        "netbird_api_account_created_timestamp_seconds",
        "Time when the account was created, in seconds since 1970",
        "created_at",
        timestamp,
    ),
    ACCOUNT.field(
        "netbird_api_account_peer_login_expiration_enabled",
        "Whether logins of peers expire (1 = yes, 0 = no)",
        "settings.peer_login_expiration_enabled",
        lambda value: int(bool(value)),
        alert="0 where your rules require that logins expire",
    ),
    ACCOUNT.field(
        "netbird_api_account_peer_inactivity_expiration_enabled",
        "Whether logins of inactive peers expire (1 = yes, 0 = no)",
        "settings.peer_inactivity_expiration_enabled",
        lambda value: int(bool(value)),
    ),
    ACCOUNT.field(
        "netbird_api_account_peer_login_expiration_seconds",
        "Time in seconds after which the login of a peer expires",
        "settings.peer_login_expiration",
    ),
    ACCOUNT.field(
        "netbird_api_account_peer_inactivity_expiration_seconds",
        "Time in seconds after which the login of an inactive peer expires",
        "settings.peer_inactivity_expiration",
    ),
    ACCOUNT.samples(
        "netbird_api_account_setting_enabled",
        "Whether a setting of the account is enabled (1 = yes, 0 = no)",
        "accounts[].settings, accounts[].settings.extra",
        _choices,
        alert="a value that differs from your rules",
    ),
    ACCOUNT.field(
        "netbird_api_account_network_addresses",
        "Number of addresses for peers in the account's IPv4 range",
        "settings.network_range",
        address_count,
        alert="sum(netbird_api_peers) close to it: no peer can be added then",
    ),
    VERSION.info(
        "netbird_api_management_info",
        "Version of the management server (always 1)",
        {"version": "management_current_version"},
        source="instance/version.management_current_version",
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


ADDRESS_POOL_FULL = FindingKind(
    "NetBirdAddressPoolNearlyFull",
    "The address range",
    lasts="1h",
    summary="The address range is nearly full",
    description="Peers use nearly all addresses of the account's range.",
)
SETTING_DIFFERS = FindingKind(
    "NetBirdSettingDiffers",
    "Setting",
    "setting",
    lasts="15m",
    summary="Setting {{ $labels.setting }} must be on or off, but is not",
    description="The thresholds of the exporter require another value of the account's"
    " setting {{ $labels.setting }}.",
    own_labels=(("setting", "object", "(.+)"),),
)


def address_pool(snapshot: Snapshot) -> Iterator[Finding]:
    share = snapshot.thresholds.shares["addresses_used"]
    for account in snapshot.inventory.accounts or ():
        size = address_count(account.settings.network_range)
        used = len(snapshot.inventory.peers or ())
        if size and used / size > share:
            yield snapshot.finding(
                ADDRESS_POOL_FULL,
                f"is nearly full: peers use {used:,} of {size:,} addresses.",
            )


def settings(snapshot: Snapshot) -> Iterator[Finding]:
    for account in snapshot.inventory.accounts or ():
        for name, value in choices(account):
            if snapshot.thresholds.settings.get(name, value) is not value:
                yield snapshot.finding(
                    SETTING_DIFFERS,
                    f"is {'on' if value else 'off'}, but must be"
                    f" {'off' if value else 'on'}.",
                    object_id=name,
                    name=name,
                )


FINDERS = (
    Finder(address_pool, (ADDRESS_POOL_FULL,), ("accounts", "peers")),
    Finder(settings, (SETTING_DIFFERS,), ("accounts",)),
)

SUBJECT = Subject(__name__, (ACCOUNTS, INSTANCE_VERSION), FAMILIES, FINDERS)
