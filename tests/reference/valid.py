"""The fields of each resource's records, and the rules for valid records."""

from tests.reference.page import MAX_LABEL_BYTES
from tests.reference.shapes import Kind
from tests.reference.subjects import MODULES

RECORDS: dict[str, Kind] = {
    name: kind
    for module in MODULES.values()
    for name, kind in getattr(module, "RECORDS", {}).items()
}
"""The fields that are read, by resource."""

OBJECTS = frozenset(
    {"dns_settings", "instance_version", "agent_settings", "agent_denials"}
)
"""Resources that are one object instead of a list."""

FIELDS = {
    "dns_settings": {"disabled_management_groups"},
    "instance_version": {
        "management_current_version",
        "management_available_version",
        "management_update_available",
    },
    "agent_settings": {
        "enable_log_collection",
        "enable_prompt_collection",
        "redact_pii",
        "dedicated",
        "access_log_retention_days",
    },
    "agent_denials": {"total_records"},
}
"""The fields of these objects. An object without any of them is something else."""

IDENTITIES = {
    "proxy_clusters": "address",
    "agent_usage": "period_start",
    "agent_usage_earlier": "period_start",
}
"""Fields that identify records instead of an id. They may be missing."""

ROWS = frozenset({"agent_consumption"})
"""Lists of records without an identity."""

NEVER_NULL = frozenset({"peers", "groups"})
"""Resources whose empty list is never sent as `null`."""


def identity(resource: str) -> str:
    """Return the field that identifies a resource's records."""
    return IDENTITIES.get(resource, "id")


def readable(resource: str, record: object) -> bool:
    """Return whether a record is valid: it has the right types and an identity."""
    if not isinstance(record, dict) or not RECORDS[resource](record):
        return False
    if resource in OBJECTS | ROWS:
        return True
    own = record.get(identity(resource))
    if own is None:
        return resource in IDENTITIES
    return isinstance(own, str) and len(own.encode()) <= MAX_LABEL_BYTES
