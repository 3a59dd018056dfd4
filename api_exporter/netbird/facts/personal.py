"""The kinds of personal data, and the labels that have them."""

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
