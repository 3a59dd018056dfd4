"""Lines of JSON from rows: NetBird's own fields without personal data. Pure.

Lines contain names and other data of peers, groups and networks, as metrics do. Unknown
fields, lists and nested objects count as personal data, because NetBird may be newer
than the exporter.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from ipaddress import ip_address, ip_network

import msgspec

from api_exporter.logs.listing import LogRow
from api_exporter.netbird.elements import DECODE_ERRORS
from api_exporter.netbird.records import PERSONAL
from api_exporter.subjects.events import EVENT_FIELDS, META_FIELDS

LINE_START = b'{"account":'

_ALL_KINDS = frozenset(PERSONAL)
_NO_KINDS = frozenset[str]()

_FIELD_KINDS = {
    "activity": "",
    "activity_code": "",
    "id": "",
    "initiator_id": "",
    "meta": "",
    "target_id": "",
    "timestamp": "",
    **EVENT_FIELDS,
}
"""The kind of personal data of each field of an event; "" for none."""

_NAME_KEYS = frozenset({"name", "new_name", "old_name"})
"""Keys of `meta` with the name of the object that an event is about."""

_OBJECT_CODES = re.compile(
    r"(peer|user\.peer|setupkey|group|network|route|policy|nameserver|dns|posture"
    r"|service(?!\.user)|domain|resource|personal\.access\.token)\."
)
"""Activity codes of objects that are not persons."""

_META_KINDS = {
    **META_FIELDS,
    **dict.fromkeys(
        (
            *("auth", "content", "created_at", "domain", "domains", "fqdn", "group"),
            *("group_id", "id", "is_service_user", "issued"),
            *("listen_port", "location_country_code", "mode", "network_id"),
            *("network_name", "network_range", "new_network_range_v6"),
            *("old_network_range_v6", "peer", "peer_fqdn", "peer_groups", "peer_id"),
            *("proxy_cluster", "reason", "resource_id", "resource_name"),
            *("resource_type", "role", "setupkey", "target_cluster", "ttl", "type"),
            *("validated", "zone_id", "zone_name"),
        ),
        "",
    ),
}
"""The kind of personal data of each key of `meta`; "" for none."""

_ADDRESS_KEYS = frozenset({"ip", "ipv6", "peer_ip"})
"""Keys of `meta` with addresses, mostly of NetBird's own network."""

_OWN_NETWORKS = (ip_network("100.64.0.0/10"), ip_network("fc00::/7"))
"""Address ranges of NetBird networks. No internet address is in them."""

_ROW_KINDS = dict.fromkeys(
    (
        *("id", "timestamp", "service_id", "protocol", "method", "status_code"),
        *("duration_ms", "bytes_upload", "bytes_download", "reason"),
        *("auth_method_used", "country_code"),
    ),
    "",
)
"""Fields of a row of the access log without personal data."""

_METADATA_KINDS = {"crowdsec_mode": "", "crowdsec_verdict": ""}
"""Keys of `metadata` without personal data."""

_FAILURES = (*DECODE_ERRORS, ArithmeticError)

# Decimal keeps numbers as they are written.
_DECODER = msgspec.json.Decoder(dict[str, object], float_hook=Decimal)
_FIELDS_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE_DECODER = msgspec.json.Decoder(object, float_hook=Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def event_line(event: LogRow, account: str, personal: frozenset[str]) -> bytes:
    """Return an audit event as a line of JSON, empty if the event is unreadable."""
    if personal >= _ALL_KINDS:
        return _line(event.raw, account, _without_secret)
    return _line(event.raw, account, lambda fields: _public(fields, personal))


def row_line(row: LogRow, account: str, personal: frozenset[str]) -> bytes:
    """Return a row of the access log as a line of JSON; see `event_line`."""
    whole = "access_log" in personal
    return _line(row.raw, account, _all_fields if whole else _public_row)


def _line(
    raw: msgspec.Raw,
    account: str,
    public: Callable[[dict[str, object]], dict[str, object]],
) -> bytes:
    try:
        fields = public(_decoded(bytes(raw)))
        fields = {"account": "", **fields} | {"account": account}
        text = _ENCODER.encode(fields).decode()
    except _FAILURES:
        return b""
    # JSON allows these characters in a string; some readers split lines at them.
    text = re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", text)
    return text.encode() + b"\n"


def _all_fields(fields: dict[str, object]) -> dict[str, object]:
    return fields


def _without_secret(fields: dict[str, object]) -> dict[str, object]:
    """Leave out a setup key, which NetBird sends with most of it masked."""
    meta = fields.get("meta")
    if not isinstance(meta, dict):
        return fields
    return {**fields, "meta": {k: meta[k] for k in meta if k != "key"}}


def _public_row(fields: dict[str, object]) -> dict[str, object]:
    public = _allowed_fields(fields, _ROW_KINDS, _NO_KINDS)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        public["metadata"] = _allowed_fields(metadata, _METADATA_KINDS, _NO_KINDS)
    return public


def _decoded(raw: bytes) -> dict[str, object]:
    """Return the fields of a row, with U+FFFD for bytes that are not UTF-8.

    Fields with numbers that Python cannot represent are left out.
    """
    text = raw.decode("utf-8", "replace")
    try:
        return _DECODER.decode(text)
    except _FAILURES:
        found = {}
        for name, value in _FIELDS_DECODER.decode(text).items():
            with suppress(*_FAILURES):
                found[name] = _VALUE_DECODER.decode(value)
        return found


def _public(fields: dict[str, object], allowed: frozenset[str]) -> dict[str, object]:
    meta = fields.get("meta")
    if "meta" in fields:
        fields = {**fields, "meta": None}
    public = _allowed_fields(fields, _FIELD_KINDS, allowed)
    if isinstance(meta, dict):
        is_object = _OBJECT_CODES.match(str(fields.get("activity_code")))
        kinds = {
            **_META_KINDS,
            **dict.fromkeys(_NAME_KEYS, "" if is_object else "name"),
        }
        for name in _ADDRESS_KEYS & meta.keys():
            kinds[name] = "" if _is_own(meta[name]) else "connection_ip"
        public["meta"] = _allowed_fields(meta, kinds, allowed)
    return public


def _allowed_fields(
    fields: Mapping[str, object], kinds: Mapping[str, str], allowed: frozenset[str]
) -> dict[str, object]:
    return {
        name: value
        for name, value in fields.items()
        if kinds.get(name) in {"", *allowed} and not isinstance(value, (dict, list))
    }


def _is_own(address: object) -> bool:
    try:
        found = ip_address(str(address))
    except ValueError:
        return False
    return any(found in network for network in _OWN_NETWORKS)
