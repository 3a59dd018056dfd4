"""Which fields are personal data, and of which kind."""

from collections.abc import Mapping

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
"""The kinds of personal data: labels that stand on `_info` series only on demand, what
each user has used of the Agent Network, and what is left out of the access log.
"""

PEER = {
    "city_name": "city",
    "hostname": "hostname",
    "connection_ip": "connection_ip",
    "serial_number": "serial_number",
}
"""The kind of a peer's fields."""

USER = {"name": "name", "email": "email"}

INVITE = {"email": "email", "name": "name"}

EVENT = {"initiator_email": "email", "initiator_name": "name"}

META = {
    "email": "email",
    "username": "name",
    "user_name": "name",
    "location_city_name": "city",
    "location_geo_name_id": "city",
    "location_connection_ip": "connection_ip",
}
"""In the `meta` of an event."""


def personal_labels(
    fields: Mapping[str, str], record: object, kinds: frozenset[str]
) -> dict[str, str]:
    """What may be told of a record, by kind."""
    if not kinds:  # nearly always, and of each peer
        return {}
    found = {kind: getattr(record, f) for f, kind in fields.items() if kind in kinds}
    if found.get("connection_ip") == "<nil>":  # Go's printer of an unknown address
        found["connection_ip"] = ""
    return found
