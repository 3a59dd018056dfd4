"""The look-up table: a row for each peer, by its addresses and DNS names. Pure.

It is made once for each publication, so a look-up computes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, AF_INET6, inet_pton

from msgspec import Struct
from msgspec.json import Encoder

from api_exporter.exposition.pages import Payload
from api_exporter.exposition.text import boolean
from api_exporter.netbird.facts.personal import personal_labels
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer, User
from api_exporter.subjects.peers import PEER_FIELDS
from api_exporter.subjects.users import USER_FIELDS
from api_exporter.web.discovery.membership import NO_GROUPS, GroupList, membership
from api_exporter.web.json_list import JsonList, ResponseTooLong

TABLE_READS = ("peers", "groups", "users")
"""The resources of the table; the last one is optional."""

MAX_TABLE_BYTES = 64 * 1024 * 1024
"""The maximum bytes of the whole table as JSON or CSV, which stay in memory."""

MAX_FOUND = 100
"""The maximum number of peers in a result: peers may share an extra DNS name."""

_ROWS_PER_SLICE = 2_000

_encode = Encoder().encode

Key = bytes | str
"""A packed address, or a DNS name in small letters."""


class PeerRow(Struct, frozen=True, gc=False):
    """A peer. What the settings do not allow, and what is unknown, is empty."""

    address: str
    ipv6: str
    dns_name: str
    extra_dns_names: tuple[str, ...]
    peer_id: str
    peer: str
    connected: bool
    os: str
    version: str
    country: str
    groups: tuple[str, ...]
    user_id: str
    user_email: str = ""
    user_name: str = ""
    hostname: str = ""
    city: str = ""
    connection_ip: str = ""
    serial_number: str = ""


class Table(Struct, frozen=True, kw_only=True):
    """The rows of a publication.

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
    group_lists = membership(inventory.joined.groups or (), None)
    users: Mapping[str, User] = {}
    if inventory.personal & {*USER_FIELDS.values()}:
        users = {user.id: user for user in inventory.joined.users or ()}
    every = [
        _row(
            peer,
            group_lists.get(peer.id, NO_GROUPS),
            users.get(peer.user_id),
            inventory.personal,
        )
        for peer in inventory.detailed_peers()
    ]
    rows: dict[Key, PeerRow] = {}
    more: dict[Key, list[PeerRow]] = {}
    for row in every:
        for key in _keys(row):
            first = rows.setdefault(key, row)
            if first is not row:
                more.setdefault(key, [first]).append(row)
    return Table(rows=rows, more=more, json=_json(every), csv=_csv(every))


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


def _row(
    peer: Peer, groups: GroupList, user: User | None, kinds: frozenset[str]
) -> PeerRow:
    personal: dict[str, str] = {}
    if kinds:
        personal = personal_labels(PEER_FIELDS, peer, kinds)
        if user is not None:
            for kind, value in personal_labels(USER_FIELDS, user, kinds).items():
                personal[f"user_{kind}"] = value
    return PeerRow(
        peer.ip,
        peer.ipv6,
        peer.dns_label,
        tuple(sorted({*peer.extra_dns_labels} - {""})) if peer.extra_dns_labels else (),
        peer.id,
        peer.name,
        peer.connected,
        peer.os,
        peer.version,
        peer.country_code,
        groups.name_list,
        peer.user_id,
        **personal,
    )


def _json(rows: Iterable[PeerRow]) -> Payload | None:
    listed = JsonList(MAX_TABLE_BYTES)
    try:
        for row in rows:
            listed.add(row)
        return listed.end()
    except ResponseTooLong:
        return None


def _csv(rows: Sequence[PeerRow]) -> Payload | None:
    slices = []
    lines = [_quoted(PeerRow.__struct_fields__)]
    length = 0
    for start in range(0, max(1, len(rows)), _ROWS_PER_SLICE):
        lines += [_csv_line(row) for row in rows[start : start + _ROWS_PER_SLICE]]
        slices.append(b"\r\n".join([*lines, b""]))
        lines.clear()
        length += len(slices[-1])
        if length > MAX_TABLE_BYTES:
            return None
    return Payload(tuple(slices), length)


def _csv_line(row: PeerRow) -> bytes:
    return _quoted(
        (
            row.address,
            row.ipv6,
            row.dns_name,
            _list(row.extra_dns_names),
            row.peer_id,
            row.peer,
            boolean(row.connected),
            row.os,
            row.version,
            row.country,
            _list(row.groups),
            row.user_id,
            row.user_email,
            row.user_name,
            row.hostname,
            row.city,
            row.connection_ip,
            row.serial_number,
        )
    )


def _list(names: Sequence[str]) -> str:
    """Return `,a,b,`, as in the labels of service discovery."""
    return f",{','.join(names)}," if names else ""


def _quoted(cells: Sequence[str]) -> bytes:
    """Return a line of RFC 4180 with quotes around each cell.

    Without escapes a JSON list looks the same, and is written six times as fast.
    """
    quoted = _encode(cells)[1:-1]
    if b"\\" not in quoted:
        return quoted
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells).encode()
