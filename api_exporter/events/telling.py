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

from api_exporter.events.listing import Event, Request
from api_exporter.netbird.elements import FAILURES
from api_exporter.netbird.facts.personal import EVENT, META, PERSONAL

BEGIN = b'{"account":'
"""The first bytes of each line."""

_ALL = frozenset(PERSONAL)
_NONE = frozenset[str]()

_FIELDS = {
    "activity": "",
    "activity_code": "",
    "id": "",
    "initiator_id": "",
    "meta": "",
    "target_id": "",
    "timestamp": "",
    **EVENT,
}
"""The kind of personal data of each field of an event; "" for none."""

_NAMES = frozenset({"name", "new_name", "old_name"})
"""Keys of `meta` with the name of the object that an event is about."""

_NAMES_OF_THINGS = re.compile(
    r"(peer|user\.peer|setupkey|group|network|route|policy|nameserver|dns|posture"
    r"|service(?!\.user)|domain|resource|personal\.access\.token)\."
)
"""Activity codes of objects that are not persons."""

_META = {
    **META,
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

_ADDRESSES = frozenset({"ip", "ipv6", "peer_ip"})
"""Keys of `meta` with addresses, mostly of NetBird's own network."""

_OWN = (ip_network("100.64.0.0/10"), ip_network("fc00::/7"))
"""Address ranges of NetBird networks. No internet address is in them."""

_REQUEST = dict.fromkeys(
    (
        *("id", "timestamp", "service_id", "protocol", "method", "status_code"),
        *("duration_ms", "bytes_upload", "bytes_download", "reason"),
        *("auth_method_used", "country_code"),
    ),
    "",
)
"""Fields of a row of the access log without personal data."""

_REQUEST_METADATA = {"crowdsec_mode": "", "crowdsec_verdict": ""}
"""Keys of `metadata` without personal data."""

_FAILURES = (*FAILURES, ArithmeticError)

# Decimal keeps numbers as they are written.
_DECODER = msgspec.json.Decoder(dict[str, object], float_hook=Decimal)
_APART = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE = msgspec.json.Decoder(object, float_hook=Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def begin(account: str) -> bytes:
    """Return the first bytes of each line of an account."""
    return BEGIN + _ENCODER.encode(account) + b","


def line(event: Event, account: str, personal: frozenset[str]) -> bytes:
    """Return an audit event as a line of JSON, empty if the event is unreadable.

    Args:
        account: the account's name, empty if it is the only one.
        personal: the kinds of personal data that lines may contain.
    """
    if personal >= _ALL:
        return _line(event.raw, account, _whole)
    return _line(event.raw, account, lambda fields: _public(fields, personal))


def request_line(request: Request, account: str, personal: frozenset[str]) -> bytes:
    """Return a row of the access log as a line of JSON; see `line`."""
    whole = "access_log" in personal
    return _line(request.raw, account, _whole if whole else _public_request)


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


def _whole(fields: dict[str, object]) -> dict[str, object]:
    return fields


def _public_request(fields: dict[str, object]) -> dict[str, object]:
    public = _known(fields, _REQUEST, _NONE)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        public["metadata"] = _known(metadata, _REQUEST_METADATA, _NONE)
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
        for name, value in _APART.decode(text).items():
            with suppress(*_FAILURES):
                found[name] = _VALUE.decode(value)
        return found


def _public(fields: dict[str, object], told: frozenset[str]) -> dict[str, object]:
    meta = fields.get("meta")
    if "meta" in fields:
        fields = {**fields, "meta": None}
    public = _known(fields, _FIELDS, told)
    if isinstance(meta, dict):
        of_things = _NAMES_OF_THINGS.match(str(fields.get("activity_code")))
        kinds = {**_META, **dict.fromkeys(_NAMES, "" if of_things else "name")}
        for name in _ADDRESSES & meta.keys():
            kinds[name] = "" if _is_own(meta[name]) else "connection_ip"
        public["meta"] = _known(meta, kinds, told)
    return public


def _known(
    fields: Mapping[str, object], kinds: Mapping[str, str], told: frozenset[str]
) -> dict[str, object]:
    """Return the fields that lines may contain; lists and objects are left out."""
    return {
        name: value
        for name, value in fields.items()
        if kinds.get(name) in {"", *told} and not isinstance(value, (dict, list))
    }


def _is_own(address: object) -> bool:
    try:
        found = ip_address(str(address))
    except ValueError:
        return False
    return any(found in network for network in _OWN)
