"""A row as a line: the upstream's own fields, but for what may not be told. Pure.

What pages tell of peers, groups and networks, such as their names, is told here, too.
What is not known counts as personal, and so does whatever is in a list or in another
object: the upstream may be newer than we are.
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
"""What every line begins with."""

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
"""The kind of personal data that a field is, "" for none."""

_NAMES = frozenset({"name", "new_name", "old_name"})
"""In `meta`, the name of whatever the event is about."""

_NAMES_OF_THINGS = re.compile(
    r"(peer|user\.peer|setupkey|group|network|route|policy|nameserver|dns|posture"
    r"|service(?!\.user)|domain|resource|personal\.access\.token)\."
)
"""Activities about what is no person."""

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
"""The same for the keys of `meta`."""

_ADDRESSES = frozenset({"ip", "ipv6", "peer_ip"})
"""In `meta`, addresses that are mostly of NetBird's own network."""

_OWN = (ip_network("100.64.0.0/10"), ip_network("fc00::/7"))
"""Where addresses of such networks are, and nobody's in the internet."""

_REQUEST = dict.fromkeys(
    (
        *("id", "timestamp", "service_id", "protocol", "method", "status_code"),
        *("duration_ms", "bytes_upload", "bytes_download", "reason"),
        *("auth_method_used", "country_code"),
    ),
    "",
)
"""Of a request, what is no personal data."""

_REQUEST_METADATA = {"crowdsec_mode": "", "crowdsec_verdict": ""}
"""The same for the keys of `metadata`."""

_FAILURES = (*FAILURES, ArithmeticError)

# Numbers stay as they are written.
_DECODER = msgspec.json.Decoder(dict[str, object], float_hook=Decimal)
_APART = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE = msgspec.json.Decoder(object, float_hook=Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def begin(account: str) -> bytes:
    """What every line of an account begins with."""
    return BEGIN + _ENCODER.encode(account) + b","


def line(event: Event, account: str, personal: frozenset[str]) -> bytes:
    """An audit event as a JSON object with a line feed; empty where it cannot be told.

    Args:
        account: its name, empty where it is the only one.
        personal: the kinds of personal data that may be told.
    """
    if personal >= _ALL:
        return _line(event.raw, account, _whole)
    return _line(event.raw, account, lambda fields: _public(fields, personal))


def request_line(request: Request, account: str, personal: frozenset[str]) -> bytes:
    """The same of a row of the access log."""
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
    # What JSON allows in a string and some readers take for the end of a line.
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
    """A byte that is not UTF-8 becomes the character that stands for such bytes.

    A field that holds a number which is none for us is left out.
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
    """Those of a kind that may be told; a list or an object is of none."""
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
