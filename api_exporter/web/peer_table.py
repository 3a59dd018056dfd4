"""The table of peers: a row for each. `/sd` and `/lookup` show its columns. Pure."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from ipaddress import IPv6Address, ip_address
from operator import attrgetter
from socket import AF_INET, AF_INET6, inet_pton

from msgspec import Struct, defstruct
from msgspec.json import Encoder

from api_exporter.exposition.pages import FIRST_BYTES, PIECE_BYTES, Payload
from api_exporter.exposition.text import boolean
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.members import member_ids, named
from api_exporter.netbird.records import Group, Peer, User, personal_labels
from api_exporter.subjects.peers import PEER_FIELDS
from api_exporter.subjects.users import USER_FIELDS

TABLE_READS = ("peers", "groups", "users")
"""The resources of the table; the last one is optional."""

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""The maximum bytes of a response: two ports of 100,000 peers in `/sd`."""

MAX_TARGETS = 300_000
"""The maximum number of targets: about as many as have MAX_RESPONSE_BYTES."""

MAX_TABLE_BYTES = 64 * 1024 * 1024
"""The maximum bytes of the lookup table as JSON or CSV, which stay in memory."""

MAX_FOUND = 100
"""The maximum number of peers in a result: peers may share an extra DNS name."""

_encode = Encoder().encode


class PeerRow(Struct, frozen=True, gc=False):
    """A peer. What the settings do not allow, and what is unknown, is empty."""

    account: str
    account_id: str
    peer_id: str
    peer: str
    dns_name: str
    extra_dns_names: tuple[str, ...]
    address: str
    ipv6: str
    os: str
    kernel_version: str
    version: str
    ui_version: str
    connected: bool
    login_expired: bool
    approval_required: bool
    ssh_enabled: bool
    ephemeral: bool
    user_id: str
    country: str
    groups: tuple[str, ...]
    group_ids: tuple[str, ...]
    hostname: str = ""
    city: str = ""
    connection_ip: str = ""
    serial_number: str = ""
    user_email: str = ""
    user_name: str = ""


class GroupList:
    """A linked list of groups: those of `before`, and `last`.

    Peers with the same groups share one object. So even for 100,000 peers, the garbage
    collector has few objects to examine.
    """

    def __init__(self, before: "GroupList | None" = None, last: Group | None = None):
        self._before = before
        self._last = last

    @cached_property
    def names(self) -> tuple[str, ...]:
        return _sorted(group.name for group in self._groups())

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return _sorted(group.id for group in self._groups())

    def _groups(self) -> Iterator[Group]:
        groups: GroupList | None = self
        while groups is not None and groups._last is not None:
            yield groups._last
            groups = groups._before


_NO_GROUPS = GroupList()


def _membership(
    groups: Iterable[Group], chosen: Container[str] | None
) -> Mapping[str, GroupList]:
    """Return the groups of each chosen peer by its id; None for all peers."""
    found: dict[str, GroupList] = {}
    for group in groups:
        extended: dict[GroupList, GroupList] = {}
        for member in group.peers or ():
            if chosen is None or member.id in chosen:
                before = found.get(member.id, _NO_GROUPS)
                if before not in extended:
                    extended[before] = GroupList(before, group)
                found[member.id] = extended[before]
    return found


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*names} - {""}))


def _rows(
    inventory: Inventory,
    peers: Iterable[Peer],
    groups: Iterable[Group],
    *,
    account: str = "",
    chosen: Container[str] | None = None,
) -> Iterator[PeerRow]:
    """Yield the row of each peer, with the personal data that the settings allow.

    Args:
        account: its name in the configuration, "" if there is only one.
        chosen: the ids of the peers; None for all.
    """
    kinds, group_lists = inventory.personal, _membership(groups, chosen)
    users: Mapping[str, User] = {}
    if kinds & {*USER_FIELDS.values()}:
        users = {user.id: user for user in inventory.users or ()}
    account_id = inventory.accounts[0].id if inventory.accounts else ""
    for peer in peers:
        if chosen is not None and peer.id not in chosen:
            continue
        own, names = group_lists.get(peer.id, _NO_GROUPS), peer.extra_dns_labels
        yield PeerRow(
            account,
            account_id,
            peer.id,
            peer.name,
            peer.dns_label,
            _sorted(names) if names else (),
            peer.ip,
            peer.ipv6,
            peer.os,
            peer.kernel_version,
            peer.version,
            peer.ui_version,
            peer.connected,
            peer.login_expired,
            peer.approval_required,
            peer.ssh_enabled,
            peer.ephemeral,
            peer.user_id,
            peer.country_code,
            own.names,
            own.ids,
            **(_personal(peer, users.get(peer.user_id), kinds) if kinds else {}),
        )


def _personal(peer: Peer, user: User | None, kinds: frozenset[str]) -> dict[str, str]:
    personal = personal_labels(PEER_FIELDS, peer, kinds)
    if user is not None:
        of_user = personal_labels(USER_FIELDS, user, kinds)
        personal |= {f"user_{kind}": value for kind, value in of_user.items()}
    return personal


class ResponseTooLong(Exception):
    """A response longer than the limit."""


def json_list(elements: Iterable[object], max_bytes: int) -> Payload:
    """Return a JSON list in slices; raise ResponseTooLong.

    Each element is encoded before the next one is made.
    """
    slices: list[bytes] = []
    buffer, separator, length = bytearray(), b"[\n", 0
    encode = Encoder().encode_into
    for element in elements:
        if len(buffer) >= (PIECE_BYTES if slices else FIRST_BYTES):
            slices.append(bytes(buffer))
            length += len(buffer)
            buffer.clear()
        if length > max_bytes:
            raise ResponseTooLong
        buffer += separator
        separator = b",\n"
        encode(element, buffer, -1)
    buffer += b"[]\n" if separator == b"[\n" else b"\n]\n"
    length += len(buffer)
    if length > max_bytes:
        raise ResponseTooLong
    return Payload((*slices, bytes(buffer)), length)


class Query(Struct, frozen=True):
    """The selected targets; equivalent queries are equal.

    Attributes:
        ports: each gives one target per peer.
        groups: ids or names; a peer in any of them is selected. Empty for all peers.
        address_kind: one of ADDRESS_COLUMNS.
    """

    ports: tuple[int, ...]
    groups: frozenset[str]
    address_kind: str


ADDRESS_COLUMNS = {"ip": "address", "ipv6": "ipv6", "dns": "dns_name"}
"""The kinds of a peer's address that a target may have; the first is the default."""


TargetLabels = defstruct(
    "TargetLabels",
    [
        ("ip" if column == "address" else column, str, "")
        for column in PeerRow.__struct_fields__
        if column not in {"user_email", "user_name"}
    ],
    rename=lambda name: f"__meta_netbird_{name}",
    frozen=True,
    gc=False,
    omit_defaults=True,
)
"""The labels of a peer in `/sd`. Empty ones are left out, like unknown ones.

No label is an instant: Prometheus rebuilds a target whenever a label changes. It
refuses the whole list because of one value that is no string.
"""


class _Target(Struct, frozen=True, gc=False):
    targets: tuple[str]
    labels: Struct


def has_too_many_targets(inventory: Inventory, query: Query) -> bool:
    """Return whether a response would be too long, before it is computed.

    The number of peers is estimated: all members of the chosen groups, but no more than
    there are peers.
    """
    peer_count = len(inventory.peers or ())
    if query.groups:
        chosen = named(inventory.groups, query.groups)
        peer_count = min(peer_count, sum(len(group.peers or ()) for group in chosen))
    return peer_count * len(query.ports) > MAX_TARGETS


def target_list(inventory: Inventory, query: Query, account: str) -> Payload:
    """Return the JSON list of `/sd`; raise ResponseTooLong."""
    peers, groups = inventory.peers, inventory.groups
    assert peers is not None
    assert groups is not None
    chosen: set[str] | None = None
    if query.groups:
        chosen = member_ids(named(groups, query.groups))
    host_of = attrgetter(ADDRESS_COLUMNS[query.address_kind])

    def targets() -> Iterator[_Target]:
        groups_label = cache(label_list)
        for row in _rows(inventory, peers, groups, account=account, chosen=chosen):
            if host := host_of(row):
                host = f"[{host}]" if ":" in host else host
                labels = _labels(row, groups_label)
                for port in query.ports:
                    yield _Target((f"{host}:{port}",), labels)

    return json_list(targets(), MAX_RESPONSE_BYTES)


def _labels(row: PeerRow, groups_label: Callable[[Sequence[str]], str]) -> Struct:
    return TargetLabels(
        row.account,
        row.account_id,
        row.peer_id,
        line(row.peer),
        row.dns_name,
        label_list(row.extra_dns_names),
        row.address,
        row.ipv6,
        line(row.os),
        line(row.kernel_version),
        line(row.version),
        line(row.ui_version),
        boolean(row.connected),
        boolean(row.login_expired),
        boolean(row.approval_required),
        boolean(row.ssh_enabled),
        boolean(row.ephemeral),
        row.user_id,
        row.country,
        groups_label(row.groups),
        groups_label(row.group_ids),
        line(row.hostname),
        line(row.city),
        row.connection_ip,
        row.serial_number,
    )


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def line(text: str) -> str:
    """Replace control characters by spaces: `.` does not match a line break."""
    return text if text.isprintable() else _CONTROL.sub(" ", text)


def label_list(values: Iterable[str]) -> str:
    """Return `,a,b,`, so that `.*,a,.*` matches an element at any position."""
    return _wrapped(sorted(set(map(line, values)) - {""}))


def _wrapped(names: Sequence[str]) -> str:
    return f",{','.join(names)}," if names else ""


LOOKUP_COLUMNS = (
    "address",
    "ipv6",
    "dns_name",
    "extra_dns_names",
    "peer_id",
    "peer",
    "connected",
    "os",
    "version",
    "country",
    "groups",
    "user_id",
    "user_email",
    "user_name",
    "hostname",
    "city",
    "connection_ip",
    "serial_number",
)

_lookup_values = attrgetter(*LOOKUP_COLUMNS)

Key = bytes | str
"""A packed address, or a DNS name in small letters."""


_LookupRow = defstruct("_LookupRow", LOOKUP_COLUMNS, frozen=True, gc=False)


def lookup_row(row: PeerRow) -> Struct:
    return _LookupRow(*_lookup_values(row))


class Table(Struct, frozen=True, kw_only=True):
    """The lookup table of a publication.

    Attributes:
        rows: the first row of each key.
        more: all rows of keys that several peers share.
        json: all rows; None above MAX_TABLE_BYTES.
        csv: all rows; None above MAX_TABLE_BYTES.
    """

    rows: Mapping[Key, PeerRow]
    more: Mapping[Key, Sequence[PeerRow]]
    json: Payload | None
    csv: Payload | None

    def find(self, key: Key) -> Sequence[PeerRow]:
        """Return the rows of a key, MAX_FOUND at most."""
        if key in self.more:
            return self.more[key][:MAX_FOUND]
        return [self.rows[key]] if key in self.rows else []


def make_table(inventory: Inventory) -> Table:
    """Return the table of all peers that PEER_DETAIL allows."""
    groups = inventory.groups or ()
    every = [*_rows(inventory, inventory.detailed_peers(), groups)]
    first: dict[Key, PeerRow] = {}
    more: dict[Key, list[PeerRow]] = {}
    for row in every:
        for key in {*_keys(row)}:
            other = first.setdefault(key, row)
            if other is not row:
                more.setdefault(key, [other]).append(row)
    json = None
    with suppress(ResponseTooLong):
        json = json_list(map(lookup_row, every), MAX_TABLE_BYTES)
    return Table(rows=first, more=more, json=json, csv=_csv(every))


def address_key(text: str) -> bytes:
    """Return the key of an address in any spelling; raise ValueError."""
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.packed
    return address.packed


def name_key(text: str) -> str:
    return text.lower().removesuffix(".")


def _keys(row: PeerRow) -> Iterator[Key]:
    for family, text in ((AF_INET, row.address), (AF_INET6, row.ipv6)):
        if text:
            try:
                yield inet_pton(family, text)
            except (OSError, ValueError):  # not an address
                continue
    for name in (row.dns_name, *row.extra_dns_names):
        if name:
            key = name_key(name)
            yield key
            yield key.partition(".")[0]


_ROWS_PER_SLICE = 2_000


def _csv(rows: Sequence[PeerRow]) -> Payload | None:
    slices = []
    lines = [_quoted(LOOKUP_COLUMNS)]
    length = 0
    for start in range(0, max(1, len(rows)), _ROWS_PER_SLICE):
        part = map(_lookup_values, rows[start : start + _ROWS_PER_SLICE])
        lines.extend(
            _quoted([v if type(v) is str else _cell(v) for v in values])
            for values in part
        )
        slices.append(b"\r\n".join([*lines, b""]))
        lines.clear()
        length += len(slices[-1])
        if length > MAX_TABLE_BYTES:
            return None
    return Payload(tuple(slices), length)


def _cell(value: bool | Sequence[str]) -> str:
    """Return a cell; a list is `,a,b,`, as in the labels of service discovery."""
    return boolean(value) if isinstance(value, bool) else _wrapped(value)


_FORMULA_CELL = re.compile(rb'"[=+@\xef-]')
"""A cell that may begin like a formula. The last byte begins full-width letters."""

_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def _quoted(cells: Sequence[str]) -> bytes:
    """Return a line of RFC 4180 with quotes around each cell.

    A quote before a cell keeps spreadsheets from reading it as a formula (OWASP, CSV
    injection). Without escapes a JSON list looks the same as the line, and is written
    six times as fast.
    """
    quoted = _encode(cells)[1:-1]
    if b"\\" not in quoted and not _FORMULA_CELL.search(quoted):
        return quoted
    safe = (f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells)
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in safe).encode()
