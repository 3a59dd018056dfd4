"""What each resource sends, and which records of it cannot be read."""

from collections.abc import Callable
from itertools import starmap

from tests.reference.fields import parse
from tests.reference.page import LONGEST

Kind = Callable[[object], bool]

LARGEST = 2**53
"""Of a number that a double holds exactly."""


def word(value: object) -> bool:
    return isinstance(value, str)


def yes(value: object) -> bool:
    return isinstance(value, bool)


def count(value: object) -> bool:
    return isinstance(value, int) and not yes(value) and abs(value) <= LARGEST


def time(value: object) -> bool:
    try:
        parse(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def many(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def either(*kinds: Kind) -> Kind:
    return lambda value: any(kind(value) for kind in kinds)


def mapping(kind: Kind) -> Kind:
    return lambda value: isinstance(value, dict) and all(map(kind, value.values()))


def thing(**kinds: Kind) -> Kind:
    """An object; other fields may hold what they like."""

    def known(name: str, value: object) -> bool:
        return name not in kinds or kinds[name](value)

    return lambda value: isinstance(value, dict) and all(starmap(known, value.items()))


_NAMED = thing(id=word, name=word)
_TYPED = thing(id=word, type=word)
_GROUPS = many(thing(id=word))
_WAY = either(thing(enabled=yes), scalar)

RECORDS: dict[str, Kind] = {
    "peers": thing(
        id=word,
        name=word,
        dns_label=word,
        hostname=word,
        ip=word,
        ipv6=word,
        connection_ip=word,
        country_code=word,
        city_name=word,
        serial_number=word,
        os=word,
        kernel_version=word,
        version=word,
        ui_version=word,
        user_id=word,
        connected=yes,
        ssh_enabled=yes,
        ephemeral=yes,
        login_expired=yes,
        login_expiration_enabled=yes,
        approval_required=yes,
        created_at=time,
        last_login=time,
        last_seen=time,
        groups=many(_NAMED),
    ),
    "accounts": thing(
        id=word,
        domain=word,
        created_at=time,
        settings=thing(
            network_range=word,
            peer_login_expiration_enabled=yes,
            peer_login_expiration=count,
            peer_inactivity_expiration_enabled=yes,
            peer_inactivity_expiration=count,
        ),
    ),
    "groups": thing(
        id=word,
        name=word,
        issued=word,
        peers_count=count,
        resources_count=count,
        peers=many(_NAMED),
        resources=many(_TYPED),
    ),
    "users": thing(
        id=word,
        name=word,
        email=word,
        role=word,
        status=word,
        issued=word,
        is_current=yes,
        is_service_user=yes,
        is_blocked=yes,
        pending_approval=yes,
        last_login=time,
        auto_groups=many(word),
    ),
    "access_tokens": thing(id=word, name=word, expiration_date=time, last_used=time),
    "setup_keys": thing(
        id=word,
        name=word,
        type=word,
        state=word,
        valid=yes,
        revoked=yes,
        ephemeral=yes,
        used_times=count,
        usage_limit=count,
        expires=time,
        last_used=time,
        auto_groups=many(word),
    ),
    "networks": thing(
        id=word,
        name=word,
        description=word,
        routing_peers_count=count,
        routers=many(word),
        resources=many(word),
        policies=many(word),
    ),
    "network_routers": thing(
        id=word, enabled=yes, metric=count, peer=word, peer_groups=many(word)
    ),
    "network_resources": thing(
        id=word, name=word, type=word, address=word, enabled=yes, groups=_GROUPS
    ),
    "routes": thing(
        id=word,
        description=word,
        network_id=word,
        network_type=word,
        network=word,
        domains=many(word),
        enabled=yes,
        masquerade=yes,
        peer=word,
        peer_groups=many(word),
    ),
    "policies": thing(
        id=word,
        name=word,
        description=word,
        enabled=yes,
        source_posture_checks=many(word),
        rules=many(
            thing(
                id=word,
                action=word,
                protocol=word,
                enabled=yes,
                sources=_GROUPS,
                destinations=_GROUPS,
                sourceResource=_TYPED,
                destinationResource=_TYPED,
            )
        ),
    ),
    "posture_checks": thing(
        id=word,
        name=word,
        checks=thing(nb_version_check=thing(min_version=word)),
    ),
    "nameservers": thing(
        id=word,
        name=word,
        enabled=yes,
        primary=yes,
        nameservers=many(thing(ns_type=word, port=count)),
        domains=many(word),
        groups=many(word),
    ),
    "dns_settings": thing(disabled_management_groups=many(word)),
    "dns_zones": thing(
        id=word, name=word, domain=word, enabled=yes, records=many(_TYPED)
    ),
    "proxy_services": thing(
        id=word,
        name=word,
        mode=word,
        domain=word,
        enabled=yes,
        private=yes,
        auth=mapping(either(_WAY, many(_WAY))),
        access_restrictions=thing(
            allowed_cidrs=many(word), allowed_countries=many(word)
        ),
        meta=thing(status=word, certificate_issued_at=time),
    ),
    "proxy_domains": thing(id=word, domain=word, type=word, validated=yes),
    "proxy_clusters": thing(address=word, online=yes, connected_proxies=count),
    "proxy_tokens": thing(
        id=word, name=word, revoked=yes, expires_at=time, last_used=time
    ),
    "instance_version": thing(
        management_current_version=word,
        management_update_available=yes,
        management_available_version=word,
    ),
    "events": thing(id=word, activity_code=word, timestamp=time),
}
"""The fields that are read, by resource."""

OBJECTS = frozenset({"dns_settings", "instance_version"})
"""Resources that are one object and no list."""

NEVER_NULL = frozenset({"peers", "groups"})
"""Resources of which an empty list is never sent as `null`."""


def identity(resource: str) -> str:
    """The field that tells a resource's records apart."""
    return "address" if resource == "proxy_clusters" else "id"


def readable(resource: str, record: object) -> bool:
    """Whether a record can be read: its types are right, and it has an id to go by."""
    if not isinstance(record, dict) or not RECORDS[resource](record):
        return False
    if resource in OBJECTS:
        return True
    own = record.get(identity(resource))
    if own is None:
        return resource == "proxy_clusters"
    return isinstance(own, str) and len(own.encode()) <= LONGEST
