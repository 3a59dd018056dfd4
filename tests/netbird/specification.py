"""Makes `api_exporter/netbird/specification.json` from NetBird's `openapi.yml`.

Run `python -m tests.netbird.specification openapi.yml`. The committed file is made from
the specification of NetBird 0.77.1.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from api_exporter.netbird import unknown
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.subjects.table import RESOURCE_BY_NAME

Known = dict[str, "Known"] | list[str] | int

ROLES = [
    *("owner", "admin", "network_admin", "auditor", "billing_admin", "user"),
    *("agent_network_admin", "usage_viewer"),  # from 0.78 on
]

OTHERS: dict[str, Known] = {
    # Decoders read them, though this specification does not have them.
    "peers": {"local_flags": {"remote_jobs_allowed": 0}},
    "proxy_services": {"targets": {"access_action": ["inherit", "bypass", "block"]}},
    # The specification calls them free strings. The values are those of the server.
    "users": {"role": ROLES},
    "current_user": {"role": ROLES},
    "user_invites": {"role": ROLES},
    # The server has two more than the specification, and 31 more activity codes.
    "identity_providers": {"type": ["keycloak", "authentik"]},
    "events": {"activity_code": 0},
    # Its rows may hold prompts and are not read.
    "agent_denials": {"data": 0},
}
"""Facts about 0.77.1 that its specification does not have."""


def known_fields(specification: dict[str, Any]) -> dict[str, Known]:
    """Return the fields of each resource's records, and the values of enumerations."""
    schemas = specification["components"]["schemas"]

    def known(schema: dict[str, Any]) -> Known:
        if "$ref" in schema:
            return known(schemas[schema["$ref"].rpartition("/")[2]])
        if "items" in schema:
            return known(schema["items"])
        found: Known = 0
        for part in (*schema.get("allOf", ()), *schema.get("oneOf", ())):
            found = merged(found, known(part))
        if properties := schema.get("properties"):
            found = merged(found, {name: known(p) for name, p in properties.items()})
        values: Known = schema.get("enum", found)
        return values

    found = {}
    for resource in RESOURCE_BY_NAME.values():
        path = "/" + resource.path.replace("current_user", "userId")
        if path not in specification["paths"]:  # one network's path has the schema
            path = path.replace("networks/", "networks/{networkId}/")
        response = specification["paths"][path]["get"]["responses"]["200"]
        of_resource = known(response["content"]["application/json"]["schema"])
        if resource.name == ACCESS_LOG:  # the records are the rows of a page
            assert isinstance(of_resource, dict)
            of_resource = of_resource["data"]
        found[resource.name] = merged(of_resource, OTHERS.get(resource.name, {}))
    return found


def merged(one: Known, other: Known) -> Known:
    """Return all that one of both has; 0 in the second replaces an enumeration."""
    if isinstance(one, dict) and isinstance(other, dict):
        both = {n: merged(one[n], other[n]) for n in one.keys() & other.keys()}
        return {**one, **other, **both}
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    return other


def main() -> None:
    found = known_fields(yaml.safe_load(Path(sys.argv[1]).read_text()))
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    lines = (f"{encode(name)}:{encode(fields)}" for name, fields in found.items())
    unknown.SPECIFICATION.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
