"""The records that several subjects read, and the types of fields of all records.

They have only the fields that are exported. Facts: NetBird's `openapi.yml`, and the
responses of its server, which are looser. The server sends `null` where an array is
promised, zero times for "never", and enum values that no specification lists. Older
servers leave out keys. So only an object's id is required.

A value of another type rejects its record, unless its field is only shown.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from sys import getrefcount, intern
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields, force_setattr

Instant = Annotated[datetime, Meta(tz=True)] | None
"""An RFC 3339 time with any offset. None and all times up to 1970 mean "never"."""

SHOWN = Meta(extra={"shown": True})
"""Marks a field that neither counts nor joins need: see `remove_wrong_types`."""

ShownText = Annotated[str, SHOWN]
ShownInstant = Annotated[Instant, SHOWN]

Count = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""An integer that a sample's value, a double, holds exactly."""


MAX_GROUPS_PER_RECORD = 10_000
"""The maximum number of groups in one record: joins look up each of them."""

LIMITED_GROUPS = Meta(max_length=MAX_GROUPS_PER_RECORD)


_SHARED = (
    *("id", "name"),
    *("country_code", "city_name", "os", "kernel_version", "version", "ui_version"),
)
"""Fields of a peer whose values other peers or groups repeat: one text for all."""


FREES_INTERNED = getrefcount(intern(f"a text of {__name__}")) < 2**29
"""True if Python frees interned texts. 3.12.0 to 3.12.6 never frees them, and gives
them a huge count of references (python/cpython#113993).
"""

_share: Callable[[str], str] = intern if FREES_INTERNED else str


Choice = Annotated[bool | None, SHOWN]
"""A yes-or-no setting; None if the response does not have it."""


class LocalFlags(Struct, frozen=True, gc=False):
    """Settings on a peer's machine."""

    remote_jobs_allowed: Choice = None


NO_FLAGS = LocalFlags()

_SHARED_FLAGS = {None: NO_FLAGS, False: LocalFlags(False), True: LocalFlags(True)}


class Peer(Struct, frozen=True, gc=False, kw_only=True):
    """A machine (`/api/peers`).

    Attributes:
        last_seen: when an offline peer disconnected; None for a connected one. NetBird
            may move it with the clock there, and each refresh would change all peers.
    """

    id: str
    name: ShownText = ""
    dns_label: ShownText = ""
    hostname: ShownText = ""
    extra_dns_labels: Annotated[tuple[str, ...] | None, SHOWN] = None
    ip: ShownText = ""
    ipv6: ShownText = ""
    connection_ip: ShownText = ""
    country_code: ShownText = ""
    city_name: ShownText = ""
    serial_number: ShownText = ""
    os: ShownText = ""
    kernel_version: ShownText = ""
    version: ShownText = ""
    ui_version: ShownText = ""
    user_id: str = ""
    connected: bool = False
    ssh_enabled: bool = False
    ephemeral: bool = False
    login_expired: bool = False
    login_expiration_enabled: bool = False
    approval_required: bool = False
    created_at: ShownInstant = None
    last_login: Instant = None
    last_seen: ShownInstant = None
    local_flags: Annotated[LocalFlags, SHOWN] = NO_FLAGS

    def __post_init__(self) -> None:
        for name in _SHARED:
            force_setattr(self, name, _share(getattr(self, name)))
        shared = _SHARED_FLAGS[self.local_flags.remote_jobs_allowed]
        force_setattr(self, "local_flags", shared)
        if self.connected and self.last_seen is not None:
            force_setattr(self, "last_seen", None)


class ExtraSettings(Struct, frozen=True, gc=False, kw_only=True):
    """More settings of an account. A self-hosted server applies some of them only."""

    peer_approval_enabled: Choice = None
    user_approval_required: Choice = None
    network_traffic_logs_enabled: Choice = None
    network_traffic_packet_counter_enabled: Choice = None


class NetBirdSettings(Struct, frozen=True, gc=False, kw_only=True):
    """The settings of an account. Expirations are in seconds."""

    network_range: ShownText = ""
    peer_login_expiration: Count = 0
    peer_inactivity_expiration: Count = 0
    peer_login_expiration_enabled: Choice = None
    peer_inactivity_expiration_enabled: Choice = None
    regular_users_view_blocked: Choice = None
    groups_propagation_enabled: Choice = None
    jwt_groups_enabled: Choice = None
    routing_peer_dns_resolution_enabled: Choice = None
    peer_expose_enabled: Choice = None
    lazy_connection_enabled: Choice = None
    auto_update_always: Choice = None
    metrics_push_enabled: Choice = None
    agent_network_only: Choice = None
    embedded_idp_enabled: Choice = None
    local_auth_disabled: Choice = None
    local_mfa_enabled: Choice = None
    extra: Annotated[ExtraSettings, SHOWN] = ExtraSettings()


class NetBirdAccount(Struct, frozen=True, gc=False, kw_only=True):
    """The token's account (`/api/accounts`)."""

    id: str
    domain: ShownText = ""
    created_at: ShownInstant = None
    settings: NetBirdSettings = NetBirdSettings()


class Member(Struct, frozen=True, gc=False, kw_only=True):
    """A peer in a group."""

    id: str = ""
    name: ShownText = ""

    def __post_init__(self) -> None:
        force_setattr(self, "id", _share(self.id))
        force_setattr(self, "name", _share(self.name))


class GroupId(Struct, frozen=True, gc=False, kw_only=True):
    """A group in a rule or a network resource. Counts beside the id are unreliable."""

    id: str = ""


class TypedId(Struct, frozen=True, gc=False, kw_only=True):
    """A reference to a network resource, in a group or as one side of a rule."""

    id: str = ""
    type: str = ""


class Group(Struct, frozen=True, gc=False, kw_only=True):
    """A group of peers and network resources (`/api/groups`)."""

    id: str
    name: str = ""
    issued: ShownText = ""
    peers_count: Count = 0
    resources_count: Count = 0
    peers: tuple[Member, ...] | None = None
    resources: tuple[TypedId, ...] | None = None


class User(Struct, frozen=True, gc=False, kw_only=True):
    """A human or a service user (`/api/users`)."""

    id: str
    name: ShownText = ""
    email: ShownText = ""
    role: str = ""
    status: str = ""
    issued: Annotated[str | None, SHOWN] = None
    is_current: bool = False
    is_service_user: bool = False
    is_blocked: bool = False
    pending_approval: bool = False
    last_login: ShownInstant = None
    auto_groups: tuple[str, ...] | None = None


class Permissions(Struct, frozen=True, gc=False, kw_only=True):
    """The permissions of a user, by module and operation, such as `peers` and `read`.

    Attributes:
        is_restricted: true if NetBird shows this user no peers, unless the user has
            the permission to read them.
    """

    is_restricted: bool = False
    modules: dict[str, dict[str, bool]] | None = None


class CurrentUser(Struct, frozen=True, gc=False, kw_only=True):
    """The user of the exporter's token (`/api/users/current`).

    Fact: a service user gets 403. It may read everything, with any role.
    """

    id: str
    role: ShownText = ""
    is_service_user: bool = False
    permissions: Permissions = Permissions()


CHOICES = tuple(
    prefix + field.name
    for prefix, part in (("", NetBirdSettings), ("extra.", ExtraSettings))
    for field in fields(part)
    if field.type == Choice
)


def choices(account: NetBirdAccount) -> Iterator[tuple[str, bool]]:
    """Yield the yes-or-no settings of an account that the response has."""
    for name in CHOICES:
        part, _, field = name.rpartition(".")
        value = getattr(account.settings.extra if part else account.settings, field)
        if value is not None:
            yield name, value


class Field(Struct, frozen=True):
    """A field of a kind of record.

    Attributes:
        record: the kind of the objects in the field; None for any other content.
    """

    name: str
    content: Any
    is_shown: bool
    record: type[Struct] | None


@cache
def record_fields(kind: type[Struct]) -> tuple[Field, ...]:
    return tuple(
        Field(f.encode_name, f.type, SHOWN in get_args(f.type), _record(f.type))
        for f in msgspec.structs.fields(kind)
    )


@cache
def instants(kind: type[Struct]) -> frozenset[str]:
    """Return the names of all times in a kind of record, and in the objects in it."""
    fields = record_fields(kind)
    own = {f.name for f in fields if f.content in {Instant, ShownInstant}}
    return frozenset(own).union(*(instants(f.record) for f in fields if f.record))


def _record(kind: Any) -> type[Struct] | None:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind
    return next(filter(None, map(_record, get_args(kind))), None)


def remove_wrong_types(record: object, kind: type[Struct], path: str = "") -> set[str]:
    """Remove shown fields of another type from a record, and return their names.

    Args:
        record: parsed JSON, which is changed.
        path: the beginning of the names, with a dot at its end.
    """
    found: set[str] = set()
    if not isinstance(record, dict):
        return found
    for field in record_fields(kind):
        if field.name not in record:
            continue
        value = record[field.name]
        if field.record is not None:
            for part in value if isinstance(value, list) else (value,):
                inner = f"{path}{field.name}."
                found |= remove_wrong_types(part, field.record, inner)
        if field.is_shown and not _converts(value, field.content):
            del record[field.name]
            found.add(path + field.name)
    return found


def _converts(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


PERSONAL = (
    "email",
    "name",
    "hostname",
    "connection_ip",
    "city",
    "serial_number",
    "usage",
    "access_log",
)
"""The kinds of personal data. `usage` is each user's usage of the Agent Network.
`access_log` is personal data in the access log. All others are labels, or fields of
audit events.
"""


def personal_labels(
    fields: Mapping[str, str], record: object, kinds: frozenset[str]
) -> dict[str, str]:
    """Return the labels of a record that may be published, by kind."""
    if not kinds:  # the usual case, for each peer
        return {}
    found = {kind: getattr(record, f) for f, kind in fields.items() if kind in kinds}
    if found.get("connection_ip") == "<nil>":  # how Go prints an unknown address
        found["connection_ip"] = ""
    return found
